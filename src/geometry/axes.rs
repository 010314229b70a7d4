//! Signed axis permutations: how a device's axes lie in our X forward, Y left, Z up.

use nalgebra::{Quaternion, UnitQuaternion, Vector3};

/// A signed permutation of axes. Row `i` names the source axis and sign that gives our axis `i`.
///
/// A mirrored source (determinant -1) is allowed: the vector part of a quaternion is an axial vector, so it takes the determinant's
/// sign on top of the permutation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AxisMap {
    rows: [(u8, i8); 3],
    det: i8,
}

impl AxisMap {
    /// OpenXR: right-handed, X right, Y up, Z back.
    pub const OPENXR_RH: Self = Self::new([(2, -1), (0, -1), (1, 1)]);
    /// Unity: **left-handed**, X right, Y up, Z forward.
    pub const UNITY_LH: Self = Self::new([(2, 1), (0, -1), (1, 1)]);
    /// X right, Y forward, Z up.
    pub const RFU: Self = Self::new([(1, 1), (0, -1), (2, 1)]);
    /// X left, Y back, Z up.
    pub const LBU: Self = Self::new([(1, -1), (0, 1), (2, 1)]);
    /// Already X forward, Y left, Z up.
    pub const FLU: Self = Self::new([(0, 1), (1, 1), (2, 1)]);

    /// From rows `(source axis 0..=2, sign ±1)`.
    ///
    /// # Panics
    /// At compile time (all uses are `const`) when the rows are not a signed permutation.
    #[must_use]
    pub const fn new(rows: [(u8, i8); 3]) -> Self {
        let (a, b, c) = (rows[0].0, rows[1].0, rows[2].0);
        assert!(
            a < 3 && b < 3 && c < 3 && a != b && b != c && a != c,
            "rows must be a permutation"
        );
        let mut sign = 1;
        let mut i = 0;
        while i < 3 {
            assert!(rows[i].1 == 1 || rows[i].1 == -1, "signs must be 1 or -1");
            sign *= rows[i].1;
            i += 1;
        }
        let even = (a == 0 && b == 1) || (a == 1 && b == 2) || (a == 2 && b == 0);
        Self {
            rows,
            det: if even { sign } else { -sign },
        }
    }

    /// +1 for a rotation, -1 for a mirror.
    #[must_use]
    pub const fn determinant(self) -> i8 {
        self.det
    }

    /// A vector (position, velocity) in our axes.
    #[must_use]
    pub fn vector(self, v: Vector3<f64>) -> Vector3<f64> {
        Vector3::new(self.pick(&v, 0), self.pick(&v, 1), self.pick(&v, 2))
    }

    /// A rotation in our axes.
    #[must_use]
    pub fn rotation(self, q: UnitQuaternion<f64>) -> UnitQuaternion<f64> {
        let axial = self.vector(q.imag()) * f64::from(self.det);
        UnitQuaternion::new_unchecked(Quaternion::from_parts(q.w, axial))
    }

    fn pick(self, v: &Vector3<f64>, row: usize) -> f64 {
        let (axis, sign) = self.rows[row];
        v[usize::from(axis)] * f64::from(sign)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards: rotating then mapping equals mapping then rotating, for mirrors too.
    #[test]
    fn map_commutes_with_rotation() {
        let q = UnitQuaternion::from_euler_angles(0.3, -0.7, 1.1);
        let v = Vector3::new(0.2, -0.5, 0.9);
        for map in [
            AxisMap::OPENXR_RH,
            AxisMap::UNITY_LH,
            AxisMap::RFU,
            AxisMap::LBU,
            AxisMap::FLU,
        ] {
            assert!((map.rotation(q) * map.vector(v) - map.vector(q * v)).norm() < 1e-12);
        }
        assert_eq!(AxisMap::UNITY_LH.determinant(), -1);
        assert_eq!(AxisMap::OPENXR_RH.determinant(), 1);
    }
}
