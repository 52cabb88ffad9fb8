//! unladen-stats
