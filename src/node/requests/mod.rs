//! The log of requests, the compact record of them that replicas keep, and who made a request.

pub(super) mod request_notes;
pub(super) mod request_record;
pub(super) mod requests_made;
