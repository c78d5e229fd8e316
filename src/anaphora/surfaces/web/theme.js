// Before anything is painted: the theme that was chosen here, else that of the system.
(function () {
  "use strict";
  try {
    const chosen = localStorage.getItem("anaphora.theme");
    if (chosen === "light" || chosen === "dark") {
      document.documentElement.dataset.theme = chosen;
    }
  } catch {
    // A browser that keeps nothing shows the system's theme.
  }
})();
