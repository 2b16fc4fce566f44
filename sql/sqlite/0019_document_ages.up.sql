-- SPDX-License-Identifier: Apache-2.0
-- The texts of old revisions are deleted folder by folder, in the order of the documents' ids.
CREATE INDEX idx_documents_folder ON documents (folder, id);
