//! [`Vetted`]: the only thing an arm accepts.

/// A value that passed the guard. Only this module's parent can make one, so "checked last, by us" is a matter of types:
///
/// ```compile_fail
/// use telearm::guard::Vetted;
/// let forged: Vetted<u8> = Vetted { value: 1 };
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Vetted<T> {
    value: T,
}

impl<T> Vetted<T> {
    pub(in crate::guard) const fn seal(value: T) -> Self {
        Self { value }
    }

    /// The checked value.
    #[must_use]
    pub const fn get(&self) -> &T {
        &self.value
    }
}
