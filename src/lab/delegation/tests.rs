//! Does the laboratory measure what it says? Small worlds whose outcome is known beforehand, and an excerpt of a real one.
