-- SPDX-License-Identifier: Apache-2.0
-- Back to before users could sign in: everybody is signed out, passwords stay.

DROP TABLE user_sessions;
ALTER TABLE users DROP COLUMN locked_until;
ALTER TABLE users DROP COLUMN failed_logins;
