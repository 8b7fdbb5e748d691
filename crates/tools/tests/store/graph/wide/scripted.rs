//! The wide tree in Rust, Python, JavaScript, TypeScript and Go.

use super::Fixture;

pub(super) static FIXTURES: [Fixture; 5] = [
    Fixture {
        language: "rust",
        files: &[
            ("wide/rs/Cargo.toml", "[package]\nname = \"wide\"\n"),
            (
                "wide/rs/src/lib.rs",
                "pub mod error;
pub mod shapes;
pub use error::Problem;

pub fn checked(side: f64) -> Result<shapes::Square, Problem> {
    error::positive(side)?;
    Ok(shapes::Square::new(side))
}
",
            ),
            (
                "wide/rs/src/error.rs",
                "pub enum Problem {
    Negative,
}

pub fn positive(number: f64) -> Result<(), Problem> {
    if number < 0.0 { Err(Problem::Negative) } else { Ok(()) }
}
",
            ),
            (
                "wide/rs/src/shapes.rs",
                "use crate::error;

pub trait Named {
    fn name(&self) -> String;
}

pub trait Shape: Named {
    fn area(&self) -> f64;
}

pub struct Square {
    side: f64,
}

pub struct Circle(f64);

impl Square {
    pub fn new(side: f64) -> Self {
        Self { side }
    }
}

impl Named for Square {
    fn name(&self) -> String {
        label(\"square\")
    }
}

impl Shape for Square {
    fn area(&self) -> f64 {
        self.side * self.side
    }
}

impl Named for Circle {
    fn name(&self) -> String {
        label(\"circle\")
    }
}

impl Shape for Circle {
    fn area(&self) -> f64 {
        let _ = error::positive(self.0);
        3.0 * self.0
    }
}

fn label(word: &str) -> String {
    word.to_owned()
}
",
            ),
        ],
        found: "
            DEFINES function checked 5
            DEFINES enum Problem 1
            DEFINES function positive 5
            DEFINES trait Named 3
            DEFINES method Named::name 4
            DEFINES trait Shape 7
            DEFINES method Shape::area 8
            DEFINES struct Square 11
            DEFINES struct Circle 15
            DEFINES method Square::new 18
            DEFINES method Square::name 24
            DEFINES method Square::area 30
            DEFINES method Circle::name 36
            DEFINES method Circle::area 42
            DEFINES function label 48
            IMPORTS wide/rs/src/lib.rs -> wide/rs/src/error.rs
            IMPORTS wide/rs/src/lib.rs -> wide/rs/src/shapes.rs
            IMPORTS wide/rs/src/shapes.rs -> wide/rs/src/error.rs
            INHERITS Shape -> Named
            IMPLEMENTS Square -> Named
            IMPLEMENTS Square -> Shape
            IMPLEMENTS Circle -> Named
            IMPLEMENTS Circle -> Shape
            CALLS checked -> positive
            CALLS checked -> Square::new
            CALLS Square::new -> Square
            CALLS Square::name -> label
            CALLS Circle::name -> label
            CALLS Circle::area -> positive",
    },
    Fixture {
        language: "python",
        files: &[
            ("wide/py/zoo/__init__.py", "from .animals import Dog\n"),
            (
                "wide/py/zoo/base.py",
                "class Animal:
    def speak(self):
        return self.sound()

    def sound(self):
        return ''


class Pet:
    def name(self):
        return 'pet'
",
            ),
            (
                "wide/py/zoo/animals.py",
                "from .base import Animal, Pet
from collections import deque


class Dog(Animal, Pet):
    def sound(self):
        return bark()


class Puppy(Dog):
    def play(self):
        self.speak()
        return deque()


def bark():
    return 'woof'
",
            ),
            (
                "wide/py/zoo/shop.py",
                "import zoo.animals as animals
from zoo.animals import Puppy


def sell():
    puppy = Puppy()
    puppy.play()
    return animals.bark()
",
            ),
            (
                "wide/py/zoo/farm.py",
                "from . import base
from zoo.shop import sell


class Cow(base.Animal):
    pass


class Calf(Cow):
    pass
",
            ),
        ],
        found: "
            DEFINES class Animal 1
            DEFINES method Animal.speak 2
            DEFINES method Animal.sound 5
            DEFINES class Pet 9
            DEFINES method Pet.name 10
            DEFINES class Dog 5
            DEFINES method Dog.sound 6
            DEFINES class Puppy 10
            DEFINES method Puppy.play 11
            DEFINES function bark 16
            DEFINES function sell 5
            DEFINES class Cow 5
            DEFINES class Calf 9
            IMPORTS wide/py/zoo/farm.py -> wide/py/zoo/base.py
            IMPORTS wide/py/zoo/farm.py -> wide/py/zoo/shop.py
            INHERITS Cow -> Animal
            INHERITS Calf -> Cow
            IMPORTS wide/py/zoo/__init__.py -> wide/py/zoo/animals.py
            IMPORTS wide/py/zoo/animals.py -> wide/py/zoo/base.py
            IMPORTS wide/py/zoo/animals.py -> python:collections
            IMPORTS wide/py/zoo/shop.py -> wide/py/zoo/animals.py
            INHERITS Dog -> Animal
            INHERITS Dog -> Pet
            INHERITS Puppy -> Dog
            CALLS Animal.speak -> Animal.sound
            CALLS Dog.sound -> bark
            CALLS Puppy.play -> Animal.speak
            CALLS sell -> Puppy
            CALLS sell -> Puppy.play
            CALLS sell -> bark",
    },
    Fixture {
        language: "javascript",
        files: &[
            (
                "wide/js/queue.js",
                "export class Store {
  get() { return this.items(); }
  items() { return []; }
}
export class Queue extends Store {
  push(item) { return wrap(item); }
}
export class Stack extends Store {
  pop() { return this.get(); }
}
export function wrap(item) { return [item]; }
",
            ),
            (
                "wide/js/deque.mjs",
                "import { Queue, wrap as box } from './queue.js';
import path from 'path';
export default class Deque extends Queue {
  shift() { return box(path.sep); }
}
",
            ),
            (
                "wide/js/run.js",
                "const { Stack } = require('./queue');
import Deque from './deque.mjs';
export const run = () => {
  const stack = new Stack();
  stack.pop();
  return new Deque();
};
",
            ),
        ],
        found: "
            DEFINES class Store 1
            DEFINES method Store.get 2
            DEFINES method Store.items 3
            DEFINES class Queue 5
            DEFINES method Queue.push 6
            DEFINES class Stack 8
            DEFINES method Stack.pop 9
            DEFINES function wrap 11
            DEFINES class Deque 3
            DEFINES method Deque.shift 4
            DEFINES function run 3
            IMPORTS wide/js/deque.mjs -> wide/js/queue.js
            IMPORTS wide/js/deque.mjs -> javascript:path
            IMPORTS wide/js/run.js -> wide/js/queue.js
            IMPORTS wide/js/run.js -> wide/js/deque.mjs
            INHERITS Queue -> Store
            INHERITS Stack -> Store
            INHERITS Deque -> Queue
            CALLS Store.get -> Store.items
            CALLS Queue.push -> wrap
            CALLS Stack.pop -> Store.get
            CALLS Deque.shift -> wrap
            CALLS run -> Stack
            CALLS run -> Stack.pop
            CALLS run -> Deque",
    },
    Fixture {
        language: "typescript",
        files: &[
            (
                "wide/ts/model.ts",
                "export interface Entity { id(): string; }
export interface Saved extends Entity { at(): number; }
export enum Level { Low, High }
export abstract class Row implements Entity {
  id(): string { return key(); }
}
export class User extends Row implements Saved {
  at(): number { return 1; }
}
export function key(): string { return 'k'; }
",
            ),
            (
                "wide/ts/service.ts",
                "import { User, Level } from './model';
export class Service {
  constructor(private user: User) {}
  show(): string { return this.user.id(); }
}
export class Quiet extends Service {}
",
            ),
            ("wide/ts/index.ts", "export * from './model';\nexport { Service } from './service';\n"),
            (
                "wide/ts/main.ts",
                "import { Service, User } from './index';
export function main(): string {
  const service = new Service(new User());
  return service.show();
}
",
            ),
        ],
        found: "
            DEFINES interface Entity 1
            DEFINES method Entity.id 1
            DEFINES interface Saved 2
            DEFINES method Saved.at 2
            DEFINES enum Level 3
            DEFINES class Row 4
            DEFINES method Row.id 5
            DEFINES class User 7
            DEFINES method User.at 8
            DEFINES function key 10
            DEFINES class Service 2
            DEFINES method Service.constructor 3
            DEFINES method Service.show 4
            DEFINES class Quiet 6
            DEFINES function main 2
            IMPORTS wide/ts/service.ts -> wide/ts/model.ts
            IMPORTS wide/ts/index.ts -> wide/ts/model.ts
            IMPORTS wide/ts/index.ts -> wide/ts/service.ts
            IMPORTS wide/ts/main.ts -> wide/ts/index.ts
            IMPORTS wide/ts/main.ts -> wide/ts/service.ts
            IMPORTS wide/ts/main.ts -> wide/ts/model.ts
            INHERITS Saved -> Entity
            INHERITS User -> Row
            INHERITS Quiet -> Service
            IMPLEMENTS Row -> Entity
            IMPLEMENTS User -> Saved
            CALLS Row.id -> key
            CALLS Service.show -> Row.id
            CALLS main -> Service
            CALLS main -> User
            CALLS main -> Service.show",
    },
    Fixture {
        language: "go",
        files: &[
            ("wide/go/go.mod", "module example.org/wide\n"),
            (
                "wide/go/media/media.go",
                "package media

type Reader interface {
\tRead() int
}

type Writer interface {
\tWrite() int
}

type ReadWriter interface {
\tReader
\tWriter
}

type File struct {
\tsize int
}

type Archive struct {
\tFile
\tname string
}

func (f *File) Read() int { return limit(f.size) }

func (f *File) Write() int { return f.Read() }

func limit(size int) int { return size }
",
            ),
            (
                "wide/go/cmd/main.go",
                "package main

import (
\t\"os\"

\t\"example.org/wide/media\"
)

func main() {
\tarchive := media.Archive{}
\tarchive.Read()
\tos.Exit(0)
}
",
            ),
        ],
        found: "
            DEFINES interface Reader 3
            DEFINES interface Writer 7
            DEFINES interface ReadWriter 11
            DEFINES struct File 16
            DEFINES struct Archive 20
            DEFINES method File.Read 25
            DEFINES method File.Write 27
            DEFINES function limit 29
            DEFINES function main 9
            IMPORTS wide/go/cmd/main.go -> wide/go/media/media.go
            IMPORTS wide/go/cmd/main.go -> go:os
            INHERITS ReadWriter -> Reader
            INHERITS ReadWriter -> Writer
            INHERITS Archive -> File
            CALLS File.Read -> limit
            CALLS File.Write -> File.Read
            CALLS main -> Archive
            CALLS main -> File.Read",
    },
];
