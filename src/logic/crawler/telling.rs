//! What are people told?
