//! Do the members find each other, miss each other and come back, over a network that loses and splits?
