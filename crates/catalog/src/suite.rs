//! The behaviour that every catalog must show.
