(() => {
  const html = document.documentElement;
  const follow = () => {
    let chosen = null;
    try { chosen = localStorage.getItem("theme"); } catch { /* storage is switched off: the system's mode stays */ }
    html.style.colorScheme = chosen === "dark" || chosen === "light" ? chosen : "light dark";
  };
  follow();
  addEventListener("storage", follow);
})();
