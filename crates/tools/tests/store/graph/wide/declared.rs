//! The wide tree in Java, C, C++, Ruby and C#.

use super::Fixture;

pub(super) static FIXTURES: [Fixture; 5] = [
    Fixture {
        language: "java",
        files: &[
            (
                "wide/java/wide/Animal.java",
                "package wide;

public abstract class Animal implements Living {
  abstract String sound();
  String speak() { return sound(); }
}
",
            ),
            (
                "wide/java/wide/Living.java",
                "package wide;

public interface Living extends Named { boolean alive(); }
",
            ),
            ("wide/java/wide/Named.java", "package wide;\n\npublic interface Named { String name(); }\n"),
            (
                "wide/java/wide/Dog.java",
                "package wide;

import java.util.ArrayList;

public class Dog extends Animal implements Named {
  public Dog() { learn(); }
  String sound() { return Voice.loud(); }
  void learn() { new ArrayList<String>(); }
  static class Puppy extends Dog { void play() { speak(); } }
}
",
            ),
            (
                "wide/java/wide/Cat.java",
                "package wide;

import java.io.IOException;

public class Cat extends Animal implements Named {
  String sound() { return Voice.loud(); }
}
",
            ),
            (
                "wide/java/wide/Voice.java",
                "package wide;

public enum Voice {
  BARK;
  static String loud() { return \"woof\"; }
}
",
            ),
            (
                "wide/java/app/App.java",
                "package app;

import wide.*;

public class App {
  public static void main(String[] words) { Dog dog = new Dog(); dog.speak(); }
}
",
            ),
        ],
        found: "
            DEFINES class Animal 3
            DEFINES method Animal.sound 4
            DEFINES method Animal.speak 5
            DEFINES interface Living 3
            DEFINES method Living.alive 3
            DEFINES interface Named 3
            DEFINES method Named.name 3
            DEFINES class Dog 5
            DEFINES method Dog.Dog 6
            DEFINES method Dog.sound 7
            DEFINES method Dog.learn 8
            DEFINES class Dog.Puppy 9
            DEFINES method Dog.Puppy.play 9
            DEFINES class Cat 5
            DEFINES method Cat.sound 6
            IMPORTS wide/java/wide/Cat.java -> java:java.io
            IMPORTS wide/java/app/App.java -> wide/java/wide/Cat.java
            INHERITS Cat -> Animal
            IMPLEMENTS Cat -> Named
            CALLS Cat.sound -> Voice.loud
            DEFINES enum Voice 3
            DEFINES method Voice.loud 5
            DEFINES class App 5
            DEFINES method App.main 6
            IMPORTS wide/java/wide/Dog.java -> java:java.util
            IMPORTS wide/java/app/App.java -> wide/java/wide/Animal.java
            IMPORTS wide/java/app/App.java -> wide/java/wide/Living.java
            IMPORTS wide/java/app/App.java -> wide/java/wide/Named.java
            IMPORTS wide/java/app/App.java -> wide/java/wide/Dog.java
            IMPORTS wide/java/app/App.java -> wide/java/wide/Voice.java
            INHERITS Living -> Named
            INHERITS Dog -> Animal
            INHERITS Dog.Puppy -> Dog
            IMPLEMENTS Animal -> Living
            IMPLEMENTS Dog -> Named
            CALLS Animal.speak -> Animal.sound
            CALLS Dog.Dog -> Dog.learn
            CALLS Dog.sound -> Voice.loud
            CALLS Dog.Puppy.play -> Animal.speak
            CALLS App.main -> Dog
            CALLS App.main -> Animal.speak",
    },
    Fixture {
        language: "c",
        files: &[
            (
                "wide/c/list.h",
                "#ifndef LIST_H
#define LIST_H
typedef struct list { int size; } list;
enum order { UP, DOWN };
int list_size(const list *l);
void list_push(list *l, int value);
#endif
",
            ),
            (
                "wide/c/list.c",
                "#include \"list.h\"
#include <stdlib.h>

static int grow(list *l) { return l->size + 1; }

int list_size(const list *l) { return l->size; }

void list_push(list *l, int value) { l->size = grow(l); }
",
            ),
            (
                "wide/c/sort.c",
                "#include \"list.h\"
#include \"util/swap.h\"

union cell { int number; float real; };

int list_sort(list *l, enum order by) { SWAP(l, l); return list_size(l); }
",
            ),
            (
                "wide/c/util/swap.h",
                "#define SWAP(a, b) swap(a, b)
static inline void swap(void *a, void *b) {}
",
            ),
        ],
        found: "
            DEFINES struct list 3
            DEFINES enum order 4
            DEFINES function grow 4
            DEFINES function list_size 6
            DEFINES function list_push 8
            DEFINES struct cell 4
            DEFINES function list_sort 6
            DEFINES function SWAP 1
            DEFINES function swap 2
            IMPORTS wide/c/list.c -> wide/c/list.h
            IMPORTS wide/c/list.c -> c:stdlib.h
            IMPORTS wide/c/sort.c -> wide/c/list.h
            IMPORTS wide/c/sort.c -> wide/c/util/swap.h
            CALLS list_push -> grow
            CALLS list_sort -> SWAP
            CALLS list_sort -> list_size",
    },
    Fixture {
        language: "cpp",
        files: &[
            (
                "wide/cpp/shape.hpp",
                "#pragma once
namespace geo {
struct Point { double x; };
enum class Kind { Round, Flat };
class Shape {
 public:
  virtual ~Shape() {}
  virtual double area() const { return 0; }
  double twice() const { return 2 * area(); }
};
class Labelled {
 public:
  int label() { return 1; }
};
}
",
            ),
            (
                "wide/cpp/circle.hpp",
                "#pragma once
#include \"shape.hpp\"
namespace geo {
class Circle : public Shape, private Labelled {
 public:
  double area() const override;
};
class Ring : public Circle {};
template <typename T> T square(T x) { return x * x; }
}
",
            ),
            (
                "wide/cpp/circle.cpp",
                "#include \"circle.hpp\"
#include <cmath>

double geo::Circle::area() const { return geo::square(2.0); }

geo::Ring make() { geo::Ring ring; ring.twice(); return ring; }
",
            ),
        ],
        found: "
            DEFINES module geo 2
            DEFINES struct geo::Point 3
            DEFINES enum geo::Kind 4
            DEFINES class geo::Shape 5
            DEFINES method geo::Shape::~Shape 7
            DEFINES method geo::Shape::area 8
            DEFINES method geo::Shape::twice 9
            DEFINES class geo::Labelled 11
            DEFINES method geo::Labelled::label 13
            DEFINES module geo 3
            DEFINES class geo::Circle 4
            DEFINES class geo::Ring 8
            DEFINES function geo::square 9
            DEFINES method geo::Circle::area 4
            DEFINES function make 6
            IMPORTS wide/cpp/circle.hpp -> wide/cpp/shape.hpp
            IMPORTS wide/cpp/circle.cpp -> wide/cpp/circle.hpp
            IMPORTS wide/cpp/circle.cpp -> cpp:cmath
            INHERITS geo::Circle -> geo::Shape
            INHERITS geo::Circle -> geo::Labelled
            INHERITS geo::Ring -> geo::Circle
            CALLS geo::Shape::twice -> geo::Shape::area
            CALLS geo::Circle::area -> geo::square
            CALLS make -> geo::Shape::twice",
    },
    Fixture {
        language: "ruby",
        files: &[
            (
                "wide/rb/lib/shapes.rb",
                "module Shapes
  module Named
    def name(word)
      word
    end
  end
  class Base
    def area(x)
      double(x)
    end
    def double(x)
      x + x
    end
  end
  class Square < Base
    include Named
    def self.make(x)
      Square.new
    end
  end
  class Cube < Square
    def volume(x)
      area(x)
    end
  end
end
",
            ),
            (
                "wide/rb/lib/draw.rb",
                "require_relative 'shapes'
require 'set'

class Canvas < Shapes::Base
  def draw(x)
    square = Shapes::Square.make(x)
    name = helper(x)
    name
  end
  def helper(x)
    x
  end
end
",
            ),
        ],
        found: "
            DEFINES module Shapes 1
            DEFINES module Shapes::Named 2
            DEFINES method Shapes::Named::name 3
            DEFINES class Shapes::Base 7
            DEFINES method Shapes::Base::area 8
            DEFINES method Shapes::Base::double 11
            DEFINES class Shapes::Square 15
            DEFINES method Shapes::Square::make 17
            DEFINES class Shapes::Cube 21
            DEFINES method Shapes::Cube::volume 22
            DEFINES class Canvas 4
            DEFINES method Canvas::draw 5
            DEFINES method Canvas::helper 10
            IMPORTS wide/rb/lib/draw.rb -> wide/rb/lib/shapes.rb
            IMPORTS wide/rb/lib/draw.rb -> ruby:set
            INHERITS Shapes::Square -> Shapes::Base
            INHERITS Shapes::Cube -> Shapes::Square
            INHERITS Canvas -> Shapes::Base
            IMPLEMENTS Shapes::Square -> Shapes::Named
            CALLS Shapes::Base::area -> Shapes::Base::double
            CALLS Shapes::Square::make -> Shapes::Square
            CALLS Shapes::Cube::volume -> Shapes::Base::area
            CALLS Canvas::draw -> Shapes::Square::make
            CALLS Canvas::draw -> Canvas::helper",
    },
    Fixture {
        language: "csharp",
        files: &[
            (
                "wide/cs/Store.cs",
                "namespace Wide.Data;

public interface IEntity { int Id(); }
public interface ISaved : IEntity { int At(); }
public enum Level { Low, High }
public struct Pair { public int Sum() { return 1; } }
public abstract class Row : IEntity {
  public int Id() { return Keys.Next(); }
}
public static class Keys {
  public static int Next() { return 1; }
}
",
            ),
            (
                "wide/cs/User.cs",
                "using System.Linq;

namespace Wide.Data;

public class User : Row, ISaved {
  public User() { Check(); }
  public int At() { return Id(); }
  void Check() { }
}
public class Admin : User { }
",
            ),
            (
                "wide/cs/App.cs",
                "using Wide.Data;

namespace Wide.App;

class App {
  static void Run() { var user = new User(); user.At(); Keys.Next(); }
}
",
            ),
        ],
        found: "
            DEFINES interface IEntity 3
            DEFINES method IEntity.Id 3
            DEFINES interface ISaved 4
            DEFINES method ISaved.At 4
            DEFINES enum Level 5
            DEFINES struct Pair 6
            DEFINES method Pair.Sum 6
            DEFINES class Row 7
            DEFINES method Row.Id 8
            DEFINES class Keys 10
            DEFINES method Keys.Next 11
            DEFINES class User 5
            DEFINES method User.User 6
            DEFINES method User.At 7
            DEFINES method User.Check 8
            DEFINES class Admin 10
            DEFINES class App 5
            DEFINES method App.Run 6
            IMPORTS wide/cs/User.cs -> csharp:System.Linq
            IMPORTS wide/cs/App.cs -> wide/cs/Store.cs
            IMPORTS wide/cs/App.cs -> wide/cs/User.cs
            INHERITS ISaved -> IEntity
            INHERITS User -> Row
            INHERITS Admin -> User
            IMPLEMENTS Row -> IEntity
            IMPLEMENTS User -> ISaved
            CALLS Row.Id -> Keys.Next
            CALLS User.User -> User.Check
            CALLS User.At -> Row.Id
            CALLS App.Run -> User
            CALLS App.Run -> User.At
            CALLS App.Run -> Keys.Next",
    },
];
