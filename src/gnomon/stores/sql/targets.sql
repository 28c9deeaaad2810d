-- Agents and teams as the gates read them (RUN-2).

-- name: live_agents
SELECT * FROM agents
WHERE deleted_at IS NULL
  AND (id IN (SELECT value FROM json_each(:names)) OR slug IN (SELECT value FROM json_each(:names)));

-- name: live_teams
SELECT * FROM teams
WHERE deleted_at IS NULL
  AND (id IN (SELECT value FROM json_each(:names)) OR slug IN (SELECT value FROM json_each(:names)));
