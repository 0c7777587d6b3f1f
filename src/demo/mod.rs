//! Does it work? The crawler's main job on one machine: five daemons, a made-up web, and a table of what came of it.

pub mod dns;
pub mod reference;
pub mod web;
pub mod world;
