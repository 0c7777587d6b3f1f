//! Members die, return, leave and lose sight of each other: is nothing lost, and nothing recorded fetched again?
