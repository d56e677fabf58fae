/** The colours of curves. */

// After Okabe and Ito, darkened or lightened until each has a contrast of at least 3:1 to its background.
export const PALETTES = {
  light: ["#0072b2", "#d55e00", "#008a63", "#b5488a", "#8f6700", "#5b4fc4", "#3c4650"],
  dark: ["#56b4e9", "#ff8a3d", "#2fc79b", "#f09bcb", "#e6c200", "#a99cff", "#d5dbe1"],
};
