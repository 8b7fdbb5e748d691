//! The promises of a whole library: nothing is lost, damage is named, garbage collection is safe, history is true.

mod damage;
mod deepen;
mod figures;
mod index;
mod model;
mod model_elsewhere;
mod passages;
mod power;
mod sharing;
mod statements;
mod versions;
