//! The plane geometry needed to locate text.

use lopdf::Object;

/// An affine transformation of the plane, with its six numbers in the order of PDF.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matrix(pub(super) [f32; 6]);

impl Matrix {
    pub(super) const IDENTITY: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    pub(super) fn shift(x: f32, y: f32) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y])
    }

    /// The six numbers at the beginning of `objects`.
    pub(super) fn of(objects: &[Object]) -> Option<Self> {
        let mut numbers = [0.0; 6];
        for (number, object) in numbers.iter_mut().zip(objects.get(..6)?) {
            *number = object.as_float().ok()?;
        }
        Some(Self(numbers))
    }

    /// This transformation followed by the other.
    pub(super) fn then(self, other: Self) -> Self {
        let ([a, b, c, d, e, f], [g, h, i, j, k, l]) = (self.0, other.0);
        Self([
            a * g + b * i,
            a * h + b * j,
            c * g + d * i,
            c * h + d * j,
            e * g + f * i + k,
            e * h + f * j + l,
        ])
    }

    /// The transformed origin.
    pub(super) fn origin(self) -> (f32, f32) {
        (self.0[4], self.0[5])
    }

    /// The direction of a line of text, as a vector of length 1.
    pub(super) fn baseline(self) -> (f32, f32) {
        let [a, b, ..] = self.0;
        let length = a.hypot(b);
        if length > 0.0 { (a / length, b / length) } else { (1.0, 0.0) }
    }

    /// The transformed height of something of height 1.
    pub(super) fn height(self) -> f32 {
        self.0[2].hypot(self.0[3])
    }
}
