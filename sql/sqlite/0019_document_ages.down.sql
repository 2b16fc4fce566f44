-- SPDX-License-Identifier: Apache-2.0
-- Back to 0018.
DROP INDEX idx_documents_folder;
