-- SPDX-License-Identifier: Apache-2.0
-- Users who sign in: what is known of their attempts, and where they are signed in.

ALTER TABLE users ADD COLUMN failed_logins INTEGER NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN locked_until INTEGER;

-- One row for each device that is signed in (id = family), known by the hash of its refresh token; and
-- one for each refresh token that it has used up (family: the device's row), so that one which comes
-- again is known for what it is.
CREATE TABLE user_sessions (
    id                 TEXT PRIMARY KEY NOT NULL,
    user_id            TEXT NOT NULL REFERENCES users (id),
    tenant_id          TEXT NOT NULL,
    refresh_token_hash BLOB NOT NULL CHECK (length(refresh_token_hash) = 32),
    family             TEXT NOT NULL,
    device_info        TEXT,
    ip_address         TEXT,
    created_at         INTEGER NOT NULL,
    expires_at         INTEGER NOT NULL,
    revoked_at         INTEGER,
    revoke_reason      TEXT,
    last_activity      INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX idx_user_sessions_hash ON user_sessions (refresh_token_hash);
CREATE INDEX idx_user_sessions_user ON user_sessions (user_id, id) WHERE revoked_at IS NULL;
CREATE INDEX idx_user_sessions_expires ON user_sessions (expires_at);
