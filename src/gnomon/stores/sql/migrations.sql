-- Which migrations a database has had; applying them is the engines' affair (opening.py).

-- name: newest
SELECT max(number) AS number FROM migrations
