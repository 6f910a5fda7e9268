(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  // Every chart is SVG in HTML: its namespace is read from one, not written here.
  const NS = document.querySelector("svg")?.namespaceURI;

  // Theme: the reader's choice is kept where the browser allows it, else for this page only.
  const store = {
    get() { try { return localStorage.getItem("dyno-theme"); } catch { return null; } },
    set(value) { try { localStorage.setItem("dyno-theme", value); } catch { /* not kept */ } },
  };
  const prefersDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
  const isDark = () => (root.dataset.theme || (prefersDark() ? "dark" : "light")) === "dark";
  const themeButton = document.getElementById("theme");
  const label = () => { themeButton.textContent = isDark() ? "Light" : "Dark"; };
  const asked = location.hash === "#dark" ? "dark" : location.hash === "#light" ? "light" : store.get();
  if (asked === "dark" || asked === "light") root.dataset.theme = asked;
  themeButton.hidden = false;
  label();
  themeButton.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    store.set(root.dataset.theme);
    label();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);

  // Legend: a variant alone, in every chart and table. One style rule hides all others.
  const rule = document.head.appendChild(document.createElement("style"));
  const keys = all(".key");
  let only = null;
  all(".hint").forEach(e => { e.hidden = keys.length < 2; });
  const isolate = variant => {
    only = only === variant ? null : variant;
    root.classList.toggle("has-only", only !== null);
    const others = [...new Set(keys.map(k => k.dataset.variant))].filter(v => v !== only);
    rule.textContent = only === null ? "" : others
      .map(v => `.ch .v${v},figure.v${v}{display:none}tbody tr.v${v}{opacity:.3}`).join("");
    keys.forEach(k => k.setAttribute("aria-pressed", String(k.dataset.variant === only)));
    clear();
  };
  keys.forEach(k => k.addEventListener("click", () => isolate(k.dataset.variant)));
  const variantOf = element => [...element.classList].find(c => /^v\d+$/.test(c));
  const isHidden = element => {
    if (only === null) return false;
    const holder = element.closest("figure.of") || element.closest("[class*=v]");
    const variant = (holder && variantOf(holder)) || variantOf(element);
    return variant !== undefined && variant !== "v" + only;
  };

  // What sticks below the legend has to know how high it is.
  const legend = document.querySelector(".legend");
  const measure = () => root.style.setProperty("--legend", `${legend ? legend.offsetHeight : 0}px`);
  measure();
  addEventListener("resize", measure);

  // Steps of the one-second charts.
  all(".steps").forEach(group => {
    group.hidden = false;
    const buttons = all("button", group);
    buttons.forEach(button => button.addEventListener("click", () => {
      buttons.forEach(b => b.setAttribute("aria-pressed", String(b === button)));
      all(".panel").forEach(p => p.classList.toggle("on", p.dataset.step === button.dataset.step));
      clear();
    }));
  });

  // Numbers, as the report writes them.
  const scales = {
    "": [[1, ""], [1e3, "k"], [1e6, "M"], [1e9, "G"], [1e12, "T"]],
    us: [[1e-3, " ns"], [1, " µs"], [1e3, " ms"], [1e6, " s"]],
    B: [[1, " B"], [1e3, " kB"], [1e6, " MB"], [1e9, " GB"], [1e12, " TB"]],
  };
  const three = v => {
    if (v === 0) return "0";
    const text = Math.abs(v) >= 100 ? Math.abs(v).toFixed(0) : Math.abs(v).toPrecision(3);
    return (v < 0 ? "−" : "") + text;
  };
  const scaled = (v, list) => {
    const zero = list.find(s => s[0] === 1);
    const [factor, unit] = v === 0 ? zero
      : [...list].reverse().find(s => Math.abs(v) / s[0] >= 0.9995) || list[0];
    return three(v / factor) + unit;
  };
  const show = (v, unit) => {
    switch (unit) {
      case "us": return scaled(v, scales.us);
      case "B": return scaled(v, scales.B);
      case "B/s": return scaled(v, scales.B) + "/s";
      case "%": return three(v) + " %";
      case "1/s": return scaled(v, scales[""]) + "/s";
      case "": return scaled(v, scales[""]);
      default: return three(v) + " " + unit;
    }
  };
  const time = s => {
    const sign = s < 0 ? "−" : "", t = Math.abs(Math.round(s));
    if (t < 60) return `${sign}${t} s`;
    const two = (a, u, b, w) => `${sign}${a} ${u}${b ? ` ${b} ${w}` : ""}`;
    return t < 3600 ? two(Math.floor(t / 60), "min", t % 60, "s")
      : two(Math.floor(t / 3600), "h", Math.floor(t % 3600 / 60), "min");
  };
  const percentile = (nines, last) => nines > last - 0.15 ? "max" : `p${+((1 - 10 ** -nines) * 100).toPrecision(nines > 3 ? 7 : 4)}`;

  // A path's points, in the plot's own units; read once, when a pointer first asks.
  const points = path => {
    if (path.points) return path.points;
    const out = [];
    let x = 0, y = 0;
    for (const [, letter, rest] of path.getAttribute("d").matchAll(/([Mlhz])([^Mlhz]*)/g)) {
      const n = (rest.match(/-?\d+/g) || []).map(Number);
      if (letter === "h" || letter === "z") continue;
      for (let i = 0; i + 1 < n.length; i += 2) {
        [x, y] = letter === "M" ? [n[i], n[i + 1]] : [x + n[i], y + n[i + 1]];
        out.push([x, y]);
      }
    }
    path.points = out;
    return out;
  };
  const nearest = (list, x) => {
    let low = 0, high = list.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle][0] < x) low = middle + 1; else high = middle;
    }
    return low > 0 && x - list[low - 1][0] < list[low][0] - x ? list[low - 1] : list[low];
  };

  // Charts.
  const charts = all("svg.ch[data-lines]").map(svg => {
    const pair = name => svg.dataset[name].split(" ").map(Number);
    const [x0, x1] = pair("x"), [y0, y1] = pair("y"), [left, top, width, height] = pair("box");
    const inner = svg.querySelector("svg.in");
    const full = inner.viewBox.baseVal.width;
    return { svg, inner, x0, x1, y0, y1, left, top, width, height, full, from: 0, to: full,
      isLog: "log" in svg.dataset, unit: svg.dataset.unit, kind: svg.dataset.lines,
      row: svg.dataset.row };
  });
  const marks = all("svg.ch[data-marks]").map(svg => ({
    svg, xs: svg.dataset.marks.split(" ").map(Number),
    top: +svg.dataset.top, bottom: +svg.dataset.bottom,
    tips: all(".k", svg).map(k => {
      const title = k.querySelector("title");
      const text = title.textContent;
      title.remove();
      return { element: k, step: +k.dataset.step, text };
    }),
  }));

  let shown = [];
  function clear() {
    shown.forEach(e => e.remove());
    shown = [];
  }
  const add = (parent, element) => { shown.push(parent.appendChild(element)); return element; };
  const make = (name, attributes) => {
    const element = document.createElementNS(NS, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    return element;
  };
  const cross = (svg, x, top, bottom) =>
    add(svg, make("path", { class: "cross", d: `M${x} ${top}V${bottom}` }));
  const tip = (svg, share, title, rows, isFaint) => {
    if (!rows.length) return;
    const box = document.createElement("div");
    box.className = isFaint ? "tip faint" : "tip";
    box.setAttribute("role", isFaint ? "presentation" : "status");
    const head = box.appendChild(document.createElement("b"));
    head.textContent = title;
    rows.forEach(([name, value, className]) => {
      const row = box.appendChild(document.createElement("div"));
      row.className = "row " + className;
      row.appendChild(document.createElement("i"));
      row.appendChild(document.createElement("span")).textContent = name;
      row.appendChild(document.createElement("b")).textContent = value;
    });
    const figure = svg.closest("figure");
    add(figure, box);
    const drop = svg.getBoundingClientRect().top - figure.getBoundingClientRect().top;
    box.style.top = drop + 4 + "px";
    const width = figure.clientWidth, at = share * width;
    const isLeft = at > width / 2;
    box.style.left = Math.max(0, isLeft ? at - box.offsetWidth - 12
      : Math.min(at + 12, width - box.offsetWidth)) + "px";
  };

  const valueAt = (chart, y) => {
    const share = 1 - y / 2000;
    return chart.isLog ? chart.y0 * (chart.y1 / chart.y0) ** share
      : chart.y0 + share * (chart.y1 - chart.y0);
  };
  const unitsToX = (chart, units) => chart.x0 + units / chart.full * (chart.x1 - chart.x0);
  const visible = chart => chart.svg.getClientRects().length > 0;
  // Smallest and largest value among the repetitions behind a median.
  const spread = (chart, path, units) => {
    const own = [...path.classList].find(c => /^[vm]\d+$/.test(c));
    const found = own ? all(`.rep.${own}`, chart.inner) : [];
    const values = found.map(p => nearest(points(p), units)[1]).map(y => valueAt(chart, y));
    if (values.length < 2) return "";
    const [low, high] = [Math.min(...values), Math.max(...values)].map(v => show(v, chart.unit));
    return low === high ? "" : ` (${low} … ${high})`;
  };
  // Cross hair and values in all charts of the row; `units` is in the plot's own units.
  const readLines = (row, units, over) => {
    clear();
    charts.filter(c => c.row === row && visible(c)).forEach(chart => {
      if (row === "spectrum" && chart !== over && units > chart.full) return;
      const share = (units - chart.from) / (chart.to - chart.from);
      if (share < 0 || share > 1) return;
      const rows = all("path[data-n]", chart.inner).filter(p => !isHidden(p)).map(path => {
        const list = points(path);
        const point = list.length ? nearest(list, units) : null;
        return point && [path.dataset.n, show(valueAt(chart, point[1]), chart.unit)
          + (chart === over ? spread(chart, path, units) : ""), path.getAttribute("class"), point[1]];
      }).filter(Boolean).sort((a, b) => a[3] - b[3]).slice(0, 14);
      const x = chart.left + share * chart.width;
      cross(chart.svg, x, chart.top, chart.top + chart.height);
      const at = unitsToX(chart, units);
      const title = chart.kind === "seconds" ? time(at) : percentile(at, chart.x1);
      tip(chart.svg, x / chart.svg.viewBox.baseVal.width, title, rows, chart !== over);
    });
  };
  const readMarks = (step, over) => {
    clear();
    marks.filter(visible).forEach(chart => {
      if (chart.xs[step] === undefined) return;
      const x = chart.xs[step];
      cross(chart.svg, x, chart.top, chart.bottom);
      const found = chart.tips.filter(t => t.step === step && !isHidden(t.element.parentNode));
      const rows = found.slice(0, 14).map(t => {
        const colon = t.text.lastIndexOf(": ");
        const name = t.text.slice(0, colon);
        return [name.slice(0, name.lastIndexOf(" · ")), t.text.slice(colon + 2),
          t.element.parentNode.getAttribute("class")];
      });
      const first = found.length ? found[0].text : "";
      const name = first.slice(0, first.lastIndexOf(": "));
      const title = name.slice(name.lastIndexOf(" · ") + 3);
      tip(chart.svg, x / chart.svg.viewBox.baseVal.width, title, rows, chart !== over);
    });
  };

  // Zoom: all charts of a row show the same stretch of time.
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];
  const zoom = (row, from, to) => {
    charts.filter(c => c.row === row).forEach(chart => {
      chart.from = Math.max(0, Math.min(from, chart.full - 1));
      chart.to = Math.min(chart.full, Math.max(to, chart.from + 1));
      chart.inner.setAttribute("viewBox", `${chart.from} 0 ${chart.to - chart.from} 2000`);
      const labels = chart.svg.querySelector(".xt");
      labels.textContent = "";
      const [low, high] = [unitsToX(chart, chart.from), unitsToX(chart, chart.to)];
      const step = steps.find(s => s >= (high - low) / 6) || 86400;
      for (let t = Math.ceil(low / step) * step; t <= high; t += step) {
        const x = chart.left + (t - low) / (high - low) * chart.width;
        labels.appendChild(make("text", { x, y: chart.top + chart.height + 18, class: "a m" }))
          .textContent = time(t);
      }
    });
    clear();
  };

  const unitsUnder = (chart, event) => {
    const box = chart.svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * chart.svg.viewBox.baseVal.width;
    const share = Math.min(1, Math.max(0, (x - chart.left) / chart.width));
    return chart.from + share * (chart.to - chart.from);
  };
  charts.forEach(chart => {
    const { svg, row } = chart;
    const isTime = chart.kind === "seconds";
    let begin = null, cursor = null;
    svg.addEventListener("pointermove", event => {
      const units = unitsUnder(chart, event);
      readLines(row, isTime ? Math.round(units) : units, chart);
      if (begin === null) return;
      const x = u => chart.left + (u - chart.from) / (chart.to - chart.from) * chart.width;
      const [a, b] = [Math.min(begin, units), Math.max(begin, units)];
      add(svg, make("rect", { class: "zone", x: x(a), y: chart.top, width: x(b) - x(a),
        height: chart.height }));
    });
    svg.addEventListener("pointerleave", () => { if (begin === null) clear(); });
    if (isTime) {
      svg.addEventListener("pointerdown", event => {
        if (event.button !== 0 || event.pointerType === "touch") return;
        begin = unitsUnder(chart, event);
        svg.setPointerCapture(event.pointerId);
      });
      svg.addEventListener("pointerup", event => {
        if (begin === null) return;
        const end = unitsUnder(chart, event);
        const [a, b] = [Math.min(begin, end), Math.max(begin, end)];
        begin = null;
        if (b - a >= Math.max(2, (chart.to - chart.from) / 50)) zoom(row, Math.floor(a), Math.ceil(b));
      });
      svg.addEventListener("pointercancel", () => { begin = null; clear(); });
      svg.addEventListener("dblclick", () => zoom(row, 0, Infinity));
    }
    svg.addEventListener("keydown", event => {
      const span = chart.to - chart.from, stride = isTime ? Math.max(1, span / 100) : span / 40;
      if (cursor === null) cursor = chart.from + span / 2;
      if (event.key === "ArrowLeft") cursor = Math.max(chart.from, cursor - stride);
      else if (event.key === "ArrowRight") cursor = Math.min(chart.to, cursor + stride);
      else if (event.key === "+" && isTime) zoom(row, cursor - span / 4, cursor + span / 4);
      else if (event.key === "-" && isTime) zoom(row, cursor - span, cursor + span);
      else if (event.key === "Escape") { if (isTime) zoom(row, 0, Infinity); cursor = null; clear(); return; }
      else return;
      event.preventDefault();
      readLines(row, isTime ? Math.round(cursor) : cursor, chart);
    });
    svg.addEventListener("blur", () => { cursor = null; clear(); });
  });
  marks.forEach(chart => {
    const { svg } = chart;
    let cursor = null;
    svg.addEventListener("pointermove", event => {
      const box = svg.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
      let best = 0;
      chart.xs.forEach((at, i) => { if (Math.abs(at - x) < Math.abs(chart.xs[best] - x)) best = i; });
      readMarks(best, chart);
    });
    svg.addEventListener("pointerleave", clear);
    svg.addEventListener("keydown", event => {
      const last = chart.xs.length - 1;
      if (event.key === "ArrowLeft") cursor = Math.max(0, (cursor ?? 1) - 1);
      else if (event.key === "ArrowRight") cursor = Math.min(last, (cursor ?? -1) + 1);
      else if (event.key === "Escape") { cursor = null; clear(); return; }
      else return;
      event.preventDefault();
      readMarks(cursor, chart);
    });
    svg.addEventListener("blur", () => { cursor = null; clear(); });
  });
})();
