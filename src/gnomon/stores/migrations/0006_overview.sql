-- What the overview counts and usage sums, each by an index that holds no more than that (UI-1).

CREATE INDEX runs_usage ON runs (finished_at) WHERE model_calls IS NOT NULL;
CREATE INDEX audit_expired ON audit (at, subject_kind) WHERE action = 'EXPIRE';
-- tasks that nobody can claim now: what can be claimed has its own index, what is held has a lock
CREATE INDEX tasks_waiting ON tasks (role, status)
WHERE status IN ('in_review', 'blocked') OR (status = 'backlog' AND unmet > 0);
CREATE INDEX tasks_done ON tasks (updated_at) WHERE status = 'done';
