//! The promises of the house, with the rooms joined: nothing lost, damage named, collections safe, history true.

mod damage;
mod index;
mod model;
mod model_elsewhere;
mod passages;
mod power;
