//! Do the laboratory's commands keep their promises?
