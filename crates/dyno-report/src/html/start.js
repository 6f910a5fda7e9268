  // The address keeps what was chosen.
  function keep() {
    const parts = new URLSearchParams();
    for (const key of ["v", "metric", "how", "base", "chart"]) if (chosen[key]) parts.set(key, chosen[key]);
    if (chosen.step !== null && chosen.step !== firstStep) parts.set("step", chosen.step);
    if (chosen.t) parts.set("t", chosen.t.join("~"));
    chosen.r.forEach(name => parts.append("r", name));
    if (root.dataset.theme) parts.set("theme", root.dataset.theme);
    const text = parts.toString();
    try { history.replaceState(null, "", text ? "#" + text : location.pathname + location.search); } catch { /* as it was */ }
  }
  const restore = () => {
    const hash = location.hash.slice(1);
    if (hash === "dark" || hash === "light") { setTheme(hash); return false; }
    if (!hash.includes("=")) return false;
    const parts = new URLSearchParams(hash);
    setTheme(parts.get("theme"));
    isolate(parts.get("v"));
    showStep(parts.get("step") ?? firstStep);
    choose(parts.get("metric") || "", parts.get("how") || "");
    showReadings(parts.getAll("r"));
    setBase(parts.get("base") || "");
    const window = (parts.get("t") || "").split("~").map(Number);
    const row = `step${chosen.step ?? "0"}`;
    if (window.length === 2 && window[0] < window[1]) zoom(row, window[0], window[1]);
    else if (windows[row]) zoom(row, -Infinity, Infinity);
    chosen.chart = parts.get("chart");
    figures[chosen.chart]?.scrollIntoView({ block: "center" });
    return true;
  };
  const link = one("link");
  link.hidden = false;
  link.addEventListener("click", () => {
    keep();
    const done = text => { link.textContent = text; setTimeout(() => { link.textContent = "Copy link"; }, 1500); };
    copy(location.href, isDone => done(isDone ? "Copied" : "Copy it from the address bar"));
  });
  setTheme(store.get());
  showStep(firstStep);
  restore();
  addEventListener("hashchange", restore);
})();
