(() => {
  "use strict";
  const one = id => document.getElementById(id);
  const svgs = [...document.querySelectorAll("svg[data-of]")];
  const NS = svgs[0].namespaceURI;
  const seconds = [];
  const LONGEST = 300;
  const three = v => v === 0 ? "0" : Math.abs(v) >= 99.95 ? v.toFixed(0) : v.toPrecision(3);
  const scale = (v, units) => {
    const [factor, unit] = [...units].reverse().find(u => Math.abs(v) >= u[0] * 0.9995) || units[0];
    return three(v / factor) + unit;
  };
  const show = {
    throughput: v => scale(v, [[1, ""], [1e3, "k"], [1e6, "M"]]) + "/s",
    p99_us: v => scale(v, [[1, " µs"], [1e3, " ms"], [1e6, " s"]]),
  };
  // As in a report: a dash pattern once all colours are used.
  const classOf = index => `l c${index % 5}` + (index < 5 ? "" : ` d${(Math.floor(index / 5) - 1) % 3 + 1}`);
  const make = (parent, name, attributes, text) => {
    const made = parent.appendChild(document.createElementNS(NS, name));
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
  };
  const draw = () => {
    svgs.forEach(svg => {
      const of = svg.dataset.of;
      svg.textContent = "";
      if (!seconds.length) return;
      const most = Math.max(...seconds.map(s => s[of]), 1e-9);
      const power = 10 ** Math.floor(Math.log10(most));
      const top = [1, 2, 5, 10].map(d => d * power).find(v => v >= most);
      const [left, right, low, high] = [62, 546, 164, 10];
      const first = seconds[0].at_s, last = Math.max(seconds[seconds.length - 1].at_s, first + 30);
      for (let i = 0; i <= 2; i++) {
        const y = low + (high - low) * i / 2;
        make(svg, "path", { d: `M${left} ${y}H${right}`, class: "g" });
        make(svg, "text", { x: left - 8, y: y + 4, class: "a e" }, show[of](top * i / 2));
      }
      const place = s => `${(left + (s.at_s - first) / (last - first) * (right - left)).toFixed(1)} ${
        (low + (high - low) * s[of] / top).toFixed(1)}`;
      // Each variant has its own line, broken where another one had its turn.
      variants.forEach((name, index) => {
        let line = "", before;
        seconds.forEach((second, i) => {
          if (second.variant !== name) return;
          line += (before === i - 1 ? "L" : "M") + place(second);
          before = i;
        });
        if (line) make(svg, "path", { d: line, class: classOf(index) });
      });
      const span = Math.round(seconds[seconds.length - 1].at_s - first);
      make(svg, "text", { x: left, y: low + 18, class: "a" }, `${span} s ago`);
      make(svg, "text", { x: place(seconds[seconds.length - 1]).split(" ")[0], y: low + 18, class: "a e" }, span > 60 ? "now" : "");
      const now = seconds[seconds.length - 1];
      one(of).textContent = `${show[of](now[of])} now`;
    });
  };
  const variants = [];
  const known = name => {
    if (variants.includes(name)) return;
    variants.push(name);
    if (name === null) return;
    const key = document.createElement("span");
    key.className = "key";
    const swatch = key.appendChild(document.createElementNS(NS, "svg"));
    swatch.setAttribute("class", "sw");
    swatch.setAttribute("viewBox", "0 0 18 10");
    make(swatch, "path", { d: "M0 5H18", class: classOf(variants.length - 1) });
    key.append(name);
    one("variants").append(key);
  };
  let asked = false;
  const later = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  };
  const source = new EventSource(document.querySelector("[data-events]").dataset.events);
  // Every connection begins with all that has happened: after an interruption nothing is there twice.
  source.addEventListener("open", () => {
    seconds.length = 0;
    one("events").replaceChildren();
    later();
  });
  source.addEventListener("state", event => {
    const { planned, ended, trial, of, running, left } = JSON.parse(event.data);
    const rest = left ? `, about ${left} left` : running || ended === planned ? "" : "; no Dyno process is running it";
    one("state").textContent = `${ended} of ${planned} trials ended${rest}`;
    one("phase").textContent = trial ? of || `Trial ${trial}` : ended < planned ? "Between trials" : "All trials are done";
  });
  source.addEventListener("second", event => {
    const second = JSON.parse(event.data);
    // Another trial has a clock that went on: what is far before it is let go.
    known(second.variant);
    seconds.push(second);
    while (second.at_s - seconds[0].at_s > LONGEST || seconds[0].at_s > second.at_s) seconds.shift();
    later();
  });
  source.addEventListener("happened", event => {
    const { event: what, unix_ms, text, of, name, phase } = JSON.parse(event.data);
    const row = one("events").insertRow(0);
    const when = row.insertCell();
    when.className = "when";
    // As everywhere else: UTC, and no clock of the reader's.
    when.textContent = Number.isFinite(unix_ms) ? new Date(unix_ms).toISOString().slice(0, 19).replace("T", " ") : "–";
    row.insertCell().textContent = of || "–";
    row.insertCell().textContent = text;
    if (what === "phase_began") one("phase").textContent = [of, `${name}: ${phase}`].filter(Boolean).join(" · ");
  });
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) one("state").textContent = "The connection to Dyno is lost";
  });
})();
