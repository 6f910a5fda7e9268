(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const one = id => document.getElementById(id);
  const element = (name, className, text) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  // Every chart is SVG in HTML: its namespace is read from one, not written here.
  const NS = document.querySelector("svg")?.namespaceURI;

  // What the reader chose; the address keeps it, so that a link shows the same.
  const chosen = { v: null, step: null, t: null, metric: "", how: "", base: "", chart: null, r: [] };

  // Theme: the reader's choice is kept where the browser allows it, else for this page only.
  const store = {
    get() { try { return localStorage.getItem("dyno-theme"); } catch { return null; } },
    set(value) { try { localStorage.setItem("dyno-theme", value); } catch { /* not kept */ } },
  };
  const prefersDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
  const isDark = () => (root.dataset.theme || (prefersDark() ? "dark" : "light")) === "dark";
  const themeButton = one("theme");
  const label = () => { themeButton.textContent = isDark() ? "Light" : "Dark"; };
  const setTheme = theme => {
    if (theme === "dark" || theme === "light") root.dataset.theme = theme;
    label();
  };
  themeButton.hidden = false;
  themeButton.addEventListener("click", () => {
    setTheme(isDark() ? "light" : "dark");
    store.set(root.dataset.theme);
    keep();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);

  // Numbers, as the report writes them.
  const scales = {
    "": [[1, ""], [1e3, "k"], [1e6, "M"], [1e9, "G"], [1e12, "T"]],
    us: [[1e-3, " ns"], [1, " µs"], [1e3, " ms"], [1e6, " s"]],
    B: [[1, " B"], [1e3, " kB"], [1e6, " MB"], [1e9, " GB"], [1e12, " TB"]],
  };
  const three = (v, zeros = 4) => {
    if (v === 0) return "0";
    const size = Math.abs(v), least = 10 ** -zeros;
    if (size < least) return (v < 0 ? ">−" : "<") + least.toFixed(zeros);
    const text = size >= 99.95 ? size.toFixed(0) : size < 1e-6 ? size.toFixed(9) : size.toPrecision(3);
    return (v < 0 ? "−" : "") + text;
  };
  const scaled = (v, list) => {
    const zero = list.find(s => s[0] === 1);
    const [factor, unit] = v === 0 ? zero
      : [...list].reverse().find(s => Math.abs(v) / s[0] >= 0.9995) || list[0];
    return (factor === 1 && !unit && Number.isInteger(v) && Math.abs(v) < 1000
      ? three(v).replace(/\.0+$/, "") : three(v / factor, list === scales[""] ? 7 : 4)) + unit;
  };
  const show = (v, unit) => {
    switch (unit) {
      case "us": return scaled(v, scales.us);
      case "B": return scaled(v, scales.B);
      case "B/s": return scaled(v, scales.B) + "/s";
      case "%": return three(v) + " %";
      case "1/s": return scaled(v, scales[""]) + "/s";
      case "": return scaled(v, scales[""]);
      default: return scaled(v, scales[""]) + " " + unit;
    }
  };
  // At an axis there is room for a short unit only.
  const isLong = unit => !["us", "B/s", "1/s"].includes(unit) && unit.length > 3;
  const atAxis = (v, unit) => show(v, isLong(unit) ? "" : unit).replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");
  const grouped = n => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
  const time = s => {
    const sign = s < 0 ? "−" : "", t = Math.abs(Math.round(s));
    if (t < 60) return `${sign}${+Math.abs(s).toFixed(1)} s`;
    const two = (a, u, b, w) => `${sign}${a} ${u}${b ? ` ${b} ${w}` : ""}`;
    return t < 3600 ? two(Math.floor(t / 60), "min", t % 60, "s")
      : two(Math.floor(t / 3600), "h", Math.floor(t % 3600 / 60), "min");
  };
  // An effect in percent, from twice or half on as a ratio.
  const asEffect = percent => {
    if (percent >= 100 || percent <= -50) return `${+(1 + percent / 100).toPrecision(3)}×`;
    const text = Math.abs(percent).toFixed(1);
    return `${+text === 0 ? "" : percent > 0 ? "+" : "−"}${text} %`;
  };
  const percentile = (nines, last) => nines > last - 0.15 ? "max" : `p${+((1 - 10 ** -nines) * 100).toPrecision(nines > 3 ? 7 : 4)}`;

  // Legend: a variant alone, in every chart and table. One style rule hides all others.
  const rule = document.head.appendChild(document.createElement("style"));
  const keys = all(".key");
  all(".hint").forEach(e => { e.hidden = keys.length < 2; });
  const isolate = variant => {
    chosen.v = keys.some(k => k.dataset.variant === variant) ? variant : null;
    root.classList.toggle("has-only", chosen.v !== null);
    const others = chosen.v === null ? [] : keys.map(k => k.dataset.variant).filter(v => v !== chosen.v);
    rule.textContent = others.map(v =>
      `.ch .v${v},figure.v${v}{display:none}tbody tr.v${v},td.v${v}{opacity:.3}`).join("");
    keys.forEach(k => k.setAttribute("aria-pressed", String(k.dataset.variant === chosen.v)));
    clear();
  };
  keys.forEach(k => k.addEventListener("click", () => {
    isolate(chosen.v === k.dataset.variant ? null : k.dataset.variant);
    keep();
  }));
  const variantOf = e => [...e.classList].find(c => /^v\d+$/.test(c));
  const isHidden = e => {
    if (chosen.v === null) return false;
    const holder = e.closest("figure.of") || e.closest("[class*=v]");
    const variant = (holder && variantOf(holder)) || variantOf(e);
    return variant !== undefined && variant !== "v" + chosen.v;
  };

  // What sticks below the legend has to know how high it is.
  const legend = document.querySelector(".legend");
  const measure = () => root.style.setProperty("--legend", `${legend ? legend.offsetHeight : 0}px`);
  addEventListener("resize", measure);

  // The step: what is of another one is out of sight.
  const stepButtons = all(".steps button");
  all(".steps").forEach(group => { group.hidden = false; });
  const firstStep = stepButtons.find(b => b.getAttribute("aria-pressed") === "true")?.dataset.step ?? null;
  const panels = all(".panel");
  const showStep = step => {
    chosen.step = stepButtons.some(b => b.dataset.step === step) ? step : firstStep;
    stepButtons.forEach(b => b.setAttribute("aria-pressed", String(b.dataset.step === chosen.step)));
    if (chosen.step !== null) {
      panels.forEach(p => p.classList.toggle("on", chosen.step === "all" || p.dataset.step === chosen.step));
    }
    clear();
  };
  stepButtons.forEach(button => button.addEventListener("click", () => {
    showStep(button.dataset.step);
    chosen.t = windows[`step${chosen.step}`] || null;
    keep();
  }));
  measure();

  // Which charts by load are shown.
  const pick = document.head.appendChild(document.createElement("style"));
  all(".chooser").forEach(e => { e.hidden = false; });
  const choose = (metric, how) => {
    const is = (select, value) => select && [...select.options].some(o => o.value === value);
    chosen.metric = is(one("metric"), metric) ? metric : "";
    chosen.how = is(one("how"), how) ? how : "";
    if (one("metric")) one("metric").value = chosen.metric;
    if (one("how")) one("how").value = chosen.how;
    const hide = name => `#load .charts>figure:not(.${name}){display:none}`;
    // What is chosen may be among what is folded.
    if (chosen.metric || chosen.how) all("#load details").forEach(fold => { fold.open = true; });
    pick.textContent = (chosen.metric ? hide("of-" + chosen.metric) : "")
      + (chosen.how ? hide("how-" + chosen.how) : "");
  };
  ["metric", "how"].forEach(id => one(id)?.addEventListener("change", () => {
    choose(one("metric").value, one("how").value);
    keep();
  }));

  // A path's points, in the plot's own units; read once, when a pointer first asks.
  const points = path => {
    if (path.points) return path.points;
    const out = [];
    let x = 0, y = 0;
    for (const [, letter, rest] of path.getAttribute("d").matchAll(/([Mlhvz])([^Mlhvz]*)/g)) {
      const n = (rest.match(/-?\d+/g) || []).map(Number);
      // A level runs to the next one: a point is where it begins.
      if (letter === "h" || letter === "v") {
        if (letter === "h") x += n[0]; else out.push([x, y += n[0]]);
        continue;
      }
      if (letter === "z") continue;
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

  // Beyond its ends a line has no value: nothing is read from where nothing was measured.
  const isWithin = (list, x) => {
    if (!list.length) return false;
    const apart = i => list.length > 1 ? Math.abs(list[i + 1][0] - list[i][0]) : 1;
    const before = Math.max(1, apart(0)), behind = Math.max(1, apart(Math.max(0, list.length - 2)));
    return x >= list[0][0] - before && x < list[list.length - 1][0] + behind;
  };

  // Counts of response times by time: LEB128 numbers in base64; read once, when they are needed.
  const columnsOf = data => {
    if (data.columns) return data.columns;
    const bytes = atob(data.value);
    let at = 0;
    const next = () => {
      let value = 0, factor = 1, byte;
      do {
        byte = bytes.charCodeAt(at++);
        value += (byte & 127) * factor;
        factor *= 128;
      } while (byte > 127);
      return value;
    };
    data.columns = [];
    while (at < bytes.length) {
      const column = { seconds: next() / 10, max: next(), n: 0, counts: [] };
      let bucket = 0;
      for (let runs = next(); runs > 0; runs--) {
        bucket += next();
        for (let length = next(); length > 0; length--) {
          const count = next();
          column.counts.push([bucket++, count]);
          column.n += count;
        }
      }
      data.columns.push(column);
    }
    return data.columns;
  };
  const merge = columns => {
    const sum = { seconds: 0, max: 0, n: 0 }, counts = new Map();
    for (const column of columns) {
      sum.seconds += column.seconds;
      sum.max = Math.max(sum.max, column.max);
      sum.n += column.n;
      for (const [bucket, count] of column.counts) counts.set(bucket, (counts.get(bucket) || 0) + count);
    }
    sum.counts = [...counts].sort((a, b) => a[0] - b[0]);
    return sum;
  };
  // The middle of the bucket in which the quantile lies, in microseconds.
  const quantile = (sum, q) => {
    let soFar = 0;
    for (const [bucket, count] of sum.counts) {
      soFar += count;
      if (soFar >= q * sum.n) return Math.min(2 ** ((bucket + 0.5) / 8) / 1000, sum.max);
    }
    return null;
  };
  const grids = all("data.grid");
  const gridOf = (v, step, kind) => grids.find(g =>
    g.dataset.v === v && g.dataset.step === step && g.dataset.kind === kind);

  // Response times of the stretch of time in sight: whole columns, so a little more at its ends.
  const tellWindow = step => {
    const holder = document.querySelector(`.window[data-step="${step}"]`);
    if (!holder) return;
    const zoomed = windows[`step${step}`];
    // Of the whole measure phase the table has the estimates of the report.
    holder.first ??= all("tbody td.n, .stretch, .of-window", holder).map(e => [e, e.textContent]);
    holder.classList.toggle("zoomed", !!zoomed);
    if (!zoomed) {
      holder.first.forEach(([e, text]) => { e.textContent = text; });
      return;
    }
    const told = holder.querySelector(".of-window");
    if (told) told.textContent = told.dataset.zoomed;
    let stretch = "";
    all("tbody tr", holder).forEach(row => {
      const data = gridOf(row.dataset.v, step, row.dataset.kind);
      if (!data) return;
      const from = +data.dataset.from, length = +data.dataset.column, columns = columnsOf(data);
      const end = from + columns.length * length;
      const snap = (t, round) => Math.min(end, Math.max(from, round(t / length) * length));
      const [a, b] = [snap(zoomed[0], Math.floor), snap(zoomed[1], Math.ceil)];
      stretch = `from ${time(a)} to ${time(b)}`;
      const sum = merge(columns.slice(Math.round((a - from) / length), Math.round((b - from) / length)));
      const us = v => v === null || sum.n === 0 ? "–" : show(v, "us");
      const texts = [grouped(sum.n), sum.seconds ? show(sum.n / sum.seconds, "1/s") : "–",
        ...[0.5, 0.95, 0.99, 0.999].map(q => us(quantile(sum, q))), us(sum.max)];
      all("td.n", row).forEach((cell, i) => { cell.textContent = texts[i]; });
    });
    if (stretch) holder.querySelector(".stretch").textContent = stretch;
  };

  // Charts.
  const windows = {};
  const charts = [];
  // A second is read by its start; the last one begins a second before the end.
  const second = (chart, at) => {
    const { from, to, factor } = chart;
    return Math.max(Math.ceil(from * factor), Math.min(Math.floor(at * factor), Math.ceil(to * factor) - 1)) / factor;
  };
  const chartOf = svg => {
    const pair = name => svg.dataset[name].split(" ").map(Number);
    const [x0, x1] = pair("x"), [y0, y1] = pair("y"), [left, top, width, height] = pair("box");
    const inner = svg.querySelector("svg.in");
    const factor = inner.viewBox.baseVal.width / (x1 - x0);
    return { svg, inner, x0, x1, y0, y1, left, top, width, height, factor, from: x0, to: x1,
      isLog: "log" in svg.dataset, unit: svg.dataset.unit, kind: svg.dataset.lines,
      row: svg.dataset.row, heat: svg.dataset.heat };
  };
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
  const add = (parent, made) => { shown.push(parent.appendChild(made)); return made; };
  const make = (name, attributes) => {
    const made = document.createElementNS(NS, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    return made;
  };
  const cross = (svg, x, top, bottom) =>
    add(svg, make("path", { class: "cross", d: `M${x} ${top}V${bottom}` }));
  const tip = (svg, share, title, rows, isFaint) => {
    if (!rows.length) return;
    const box = element("div", isFaint ? "tip faint" : "tip");
    box.setAttribute("role", isFaint ? "presentation" : "status");
    box.appendChild(element("b", "", title));
    rows.forEach(([name, value, className]) => {
      const row = box.appendChild(element("div", "row " + className));
      row.appendChild(document.createElement("i"));
      row.appendChild(element("span", "", name));
      row.appendChild(element("b", "", value));
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
  const visible = chart => chart.svg.getClientRects().length > 0;
  // Smallest and largest value among the repetitions behind a median.
  const spread = (chart, path, units) => {
    const own = [...path.classList].find(c => /^[vm]\d+$/.test(c));
    const found = own ? all(`.rep.${own}`, chart.inner) : [];
    const values = found.map(p => nearest(points(p), units)[1]).map(y => valueAt(chart, y));
    if (values.length < 2) return "";
    const [low, high] = [Math.min(...values), Math.max(...values)].map(v => show(v, chart.unit));
    return low === high ? "" : ` (${low} to ${high})`;
  };
  // What a heat map tells of one of its columns.
  const readHeat = (chart, at) => {
    const [, v, step, kind] = chart.heat.match(/^(\d+) (\d+) (.*)$/s);
    const data = gridOf(v, step, kind);
    const column = data && columnsOf(data)[Math.floor((at - data.dataset.from) / data.dataset.column)];
    if (!column || !column.n) return [];
    const sum = merge([column]);
    return [["max", sum.max], ["p99", quantile(sum, 0.99)], ["p95", quantile(sum, 0.95)], ["p50", quantile(sum, 0.5)]]
      .map(([name, us]) => [name, show(us, "us"), ""])
      .concat(sum.seconds ? [["done", show(sum.n / sum.seconds, "1/s"), ""]] : []);
  };
  // Cross hair and values in all charts of the row; `at` is a place on the x axis.
  const readLines = (row, at, over) => {
    clear();
    charts.filter(c => c.row === row && visible(c)).forEach(chart => {
      if (row === "spectrum" && chart !== over && at > chart.x1) return;
      const share = (at - chart.from) / (chart.to - chart.from);
      if (share < 0 || share > 1) return;
      const units = (at - chart.x0) * chart.factor;
      const rows = chart.heat ? readHeat(chart, at)
        : all("path[data-n]", chart.inner).filter(p => !isHidden(p)).map(path => {
          const list = points(path);
          const point = isWithin(list, units) ? nearest(list, units) : null;
          return point && [path.dataset.n, show(valueAt(chart, point[1]), chart.unit)
            + (chart === over ? spread(chart, path, units) : ""), path.getAttribute("class"), point[1]];
        }).filter(Boolean).sort((a, b) => a[3] - b[3]).slice(0, 14);
      const x = chart.left + share * chart.width;
      cross(chart.svg, x, chart.top, chart.top + chart.height);
      const title = chart.kind === "seconds" ? time(at)
        : chart.kind === "times" ? show(10 ** at, "us") : percentile(at, chart.x1);
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
  const strides = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];
  const fit = chart => {
    const [a, b] = windows[chart.row] || [chart.x0, chart.x1];
    chart.from = Math.max(chart.x0, Math.min(a, chart.x1 - 1));
    chart.to = Math.min(chart.x1, Math.max(b, chart.from + 1));
    chart.inner.setAttribute("viewBox",
      `${(chart.from - chart.x0) * chart.factor} 0 ${(chart.to - chart.from) * chart.factor} 2000`);
    const labels = chart.svg.querySelector(".xt");
    labels.textContent = "";
    const most = chart.svg.classList.contains("big") && matchMedia("(max-width: 460px)").matches ? 4 : 6;
    const raw = (chart.to - chart.from) / most;
    const power = 10 ** Math.floor(Math.log10(raw));
    const stride = strides.find(s => s >= raw) || power * ([1, 2, 5].find(m => m >= raw / power) || 10);
    for (let t = Math.ceil(chart.from / stride) * stride; t <= chart.to; t += stride) {
      const x = chart.left + (t - chart.from) / (chart.to - chart.from) * chart.width;
      labels.appendChild(make("text", { x, y: chart.top + chart.height + 18, class: "a m" }))
        .textContent = time(t);
    }
  };
  const zoom = (row, from, to) => {
    const own = charts.filter(c => c.row === row);
    const low = Math.min(...own.map(c => c.x0)), high = Math.max(...own.map(c => c.x1));
    if (from <= low && to >= high) delete windows[row];
    else windows[row] = [Math.max(low, Math.floor(from)), Math.min(high, Math.ceil(to))];
    own.forEach(fit);
    clear();
    const step = /^step(\d+)$/.exec(row)?.[1];
    if (step !== undefined) {
      tellWindow(step);
      if (chosen.step === step || stepButtons.length === 0) chosen.t = windows[row] || null;
    }
    keep();
  };

  const under = (chart, event) => {
    const box = chart.svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * chart.svg.viewBox.baseVal.width;
    const share = Math.min(1, Math.max(0, (x - chart.left) / chart.width));
    return chart.from + share * (chart.to - chart.from);
  };
  const listen = svg => {
    const chart = chartOf(svg), row = chart.row, isTime = chart.kind === "seconds";
    charts.push(chart);
    let begin = null, cursor = null, anchor = null;
    const mark = (from, to) => {
      const x = u => chart.left + (u - chart.from) / (chart.to - chart.from) * chart.width;
      const [a, b] = [Math.min(from, to), Math.max(from, to)];
      add(svg, make("rect", { class: "zone", x: x(a), y: chart.top, width: x(b) - x(a),
        height: chart.height }));
    };
    svg.addEventListener("pointermove", event => {
      const at = under(chart, event);
      readLines(row, isTime ? second(chart, at) : at, chart);
      if (begin === null) return;
      mark(begin, at);
    });
    svg.addEventListener("pointerleave", () => { if (begin === null) clear(); });
    if (isTime) {
      svg.addEventListener("pointerdown", event => {
        if (event.button !== 0 || event.pointerType === "touch") return;
        begin = under(chart, event);
        svg.setPointerCapture(event.pointerId);
      });
      svg.addEventListener("pointerup", event => {
        if (begin === null) return;
        const end = under(chart, event);
        const [a, b] = [Math.min(begin, end), Math.max(begin, end)];
        begin = null;
        if (b - a >= Math.max(2, (chart.to - chart.from) / 50)) zoom(row, a, b);
      });
      svg.addEventListener("pointercancel", () => { begin = null; clear(); });
      svg.addEventListener("dblclick", () => zoom(row, -Infinity, Infinity));
    }
    svg.addEventListener("keydown", event => {
      const span = chart.to - chart.from, stride = isTime ? Math.max(1, span / 100) : span / 40;
      if (cursor === null) cursor = chart.from + span / 2;
      const isArrow = event.key === "ArrowLeft" || event.key === "ArrowRight";
      if (isArrow) anchor = event.shiftKey && isTime ? anchor ?? cursor : null;
      if (event.key === "ArrowLeft") cursor = Math.max(chart.from, cursor - stride);
      else if (event.key === "ArrowRight") cursor = Math.min(chart.to, cursor + stride);
      else if (event.key === "+" && isTime) zoom(row, cursor - span / 4, cursor + span / 4);
      else if (event.key === "-" && isTime) zoom(row, cursor - span, cursor + span);
      else if (event.key === "Escape") {
        if (isTime) zoom(row, -Infinity, Infinity);
        cursor = anchor = null;
        clear();
        return;
      } else return;
      event.preventDefault();
      readLines(row, isTime ? second(chart, cursor) : cursor, chart);
      if (anchor !== null) mark(anchor, cursor);
    });
    // Arrows with shift select a period; it is shown when shift is let go.
    svg.addEventListener("keyup", event => {
      if (event.key !== "Shift" || anchor === null) return;
      const [a, b] = [Math.min(anchor, cursor), Math.max(anchor, cursor)];
      anchor = null;
      if (b - a >= 1) zoom(row, a, b); else clear();
    });
    svg.addEventListener("blur", () => { cursor = anchor = null; clear(); });
    return chart;
  };
  all("svg.ch[data-lines]").forEach(listen);
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

  // Readings of the table: each is drawn when it is chosen.
  const counters = all("tr[data-reading]").map(row => ({
    row, name: row.dataset.reading, step: row.closest(".panel").dataset.step,
    text: row.querySelector("th").textContent.toLowerCase(), data: row.querySelector("data.series"),
  }));
  const frame = { left: 62, top: 10, width: 294, height: 102 };
  const draw = counter => {
    const { data, name, step } = counter;
    const [x0, x1] = data.dataset.x.split(" ").map(Number);
    const [y0, y1] = data.dataset.y.split(" ").map(Number);
    const { left, top, width, height } = frame;
    const svg = make("svg", { viewBox: "0 0 370 138", class: "ch", role: "img", tabindex: "0",
      "aria-label": name, "data-lines": "seconds", "data-row": `step${step}`, "data-x": data.dataset.x,
      "data-y": data.dataset.y, "data-unit": data.dataset.unit,
      "data-box": `${left} ${top} ${width} ${height}` });
    let grid = "";
    data.dataset.ticks.split(" ").map(Number).forEach(value => {
      const y = top + height * (1 - (value - y0) / (y1 - y0));
      grid += `M${left} ${y}H${left + width}`;
      svg.appendChild(make("text", { x: left - 8, y: y + 4, class: "a e" }))
        .textContent = atAxis(value, data.dataset.unit);
    });
    svg.prepend(make("path", { d: grid, class: "g" }));
    svg.appendChild(make("g", { class: "xt" }));
    const inner = svg.appendChild(make("svg", { class: "in", x: left, y: top, width, height,
      viewBox: `0 0 ${x1 - x0} 2000`, preserveAspectRatio: "none" }));
    if (x0 < 0) inner.appendChild(make("rect", { width: -x0, height: 2000, class: "warm" }));
    all(".spark path", counter.row).forEach(small => {
      const path = small.getAttribute("d");
      const key = keys.find(k => variantOf(k) === variantOf(small));
      if (!path) return;
      const colour = [...(key ? key.classList : [])].filter(c => /^[vcd]\d+$/.test(c)).join(" ");
      const line = inner.appendChild(make("path", { d: path, class: "l med " + colour,
        "data-n": key ? key.firstElementChild.nextSibling.textContent : "" }));
      // What is not read each second has a mark at each reading.
      if ("dots" in data.dataset) {
        const marks = points(line).map(([x, y]) => `M${x} ${y}h0`).join("");
        inner.appendChild(make("path", { d: marks, class: "l dots " + colour }));
      }
    });
    const figure = element("figure", "chart");
    const caption = figure.appendChild(element("figcaption"));
    caption.appendChild(element("b", "", name));
    const unit = isLong(data.dataset.unit) ? `in ${data.dataset.unit}` : "";
    const meaning = counter.row.querySelector("th small")?.textContent || "";
    caption.appendChild(element("span", "", [meaning, unit].filter(Boolean).join(" · ")));
    figure.appendChild(svg);
    counter.figure = document.querySelector(`.chosen[data-step="${step}"]`).appendChild(figure);
    counter.chart = listen(svg);
    fit(counter.chart);
    equip(figure);
  };
  const showReadings = names => {
    chosen.r = names.filter(name => counters.some(c => c.name === name));
    counters.forEach(counter => {
      const isOn = chosen.r.includes(counter.name) && counter.data !== null;
      counter.button?.setAttribute("aria-pressed", String(isOn));
      if (isOn && !counter.figure) draw(counter);
      if (!isOn && counter.figure) {
        counter.figure.remove();
        charts.splice(charts.indexOf(counter.chart), 1);
        counter.figure = counter.chart = null;
      }
    });
  };
  counters.filter(c => c.data).forEach(counter => {
    const head = counter.row.querySelector("th");
    const button = element("button", "pick", head.firstChild.textContent);
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    head.firstChild.replaceWith(button);
    counter.button = button;
    button.addEventListener("click", () => {
      showReadings(chosen.r.includes(counter.name) ? chosen.r.filter(n => n !== counter.name)
        : [...chosen.r, counter.name]);
      keep();
    });
  });
  all(".find").forEach(find => {
    find.hidden = false;
    const step = find.closest(".panel").dataset.step;
    find.querySelector("input").addEventListener("input", event => {
      const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
      counters.filter(c => c.step === step).forEach(counter => {
        counter.row.hidden = !words.every(word => counter.text.includes(word));
      });
      all(".counters tbody", find.closest(".panel")).forEach(group => {
        group.hidden = !all("tr[data-reading]", group).some(row => !row.hidden);
      });
    });
  });
