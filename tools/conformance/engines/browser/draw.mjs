// Draws a graph on a canvas: nodes are placed by springs along edges and repulsion between near
// nodes, the same way every time.

const COLOURS = ["#3b78b5", "#e0862f", "#3f9a5a", "#c0443f", "#8864b0", "#7d5a4a", "#d173b4", "#7a7f86", "#b3a82c", "#31a5b5"];

/** Draws {classes: [N], edges: [[source, target, weight]], names}. */
export function draw(canvas, { classes, edges, names }) {
  const n = classes.length, place = layout(n, edges), { width, height } = canvas;
  const c = canvas.getContext("2d"), margin = 24;
  const spread = (axis) => {
    let low = Infinity, high = -Infinity;
    for (const p of place) [low, high] = [Math.min(low, p[axis]), Math.max(high, p[axis])];
    const size = (axis ? height : width) - 2 * margin;
    return (v) => margin + (high > low ? (v - low) / (high - low) : 0.5) * size;
  };
  const x = spread(0), y = spread(1);
  c.clearRect(0, 0, width, height);
  const heaviest = edges.reduce((a, e) => Math.max(a, e[2]), 1e-9);
  for (const [s, t, w] of edges) {
    c.strokeStyle = `rgb(120 128 138 / ${(0.08 + 0.6 * Math.max(0, w) / heaviest).toFixed(3)})`;
    c.beginPath();
    c.moveTo(x(place[s][0]), y(place[s][1]));
    c.lineTo(x(place[t][0]), y(place[t][1]));
    c.stroke();
  }
  place.forEach((p, v) => {
    c.fillStyle = COLOURS[classes[v] % COLOURS.length];
    c.beginPath();
    c.arc(x(p[0]), y(p[1]), n > 1000 ? 1.6 : 4, 0, 2 * Math.PI);
    c.fill();
  });
  c.font = "13px system-ui, sans-serif";
  names.slice(0, COLOURS.length).forEach((name, i) => {
    c.fillStyle = COLOURS[i];
    c.fillText(`● ${name}`, 10, 18 + 17 * i);
  });
}

function layout(n, edges) {
  const place = Array.from({ length: n }, (_, v) => [Math.sqrt(v) * Math.cos(2.4 * v), Math.sqrt(v) * Math.sin(2.4 * v)]);
  const rounds = n > 3000 ? 40 : 150;
  for (let round = 0; round < rounds; round++) {
    const force = place.map(() => [0, 0]), cells = new Map();
    place.forEach((p, v) => { // only nodes of neighbouring cells repel each other
      const key = `${Math.round(p[0] / 3)},${Math.round(p[1] / 3)}`;
      cells.has(key) ? cells.get(key).push(v) : cells.set(key, [v]);
    });
    for (const [key, members] of cells) {
      const [cx, cy] = key.split(",").map(Number);
      for (let dx = -1; dx <= 1; dx++) for (let dy = -1; dy <= 1; dy++) {
        for (const u of (cells.get(`${cx + dx},${cy + dy}`) ?? []).slice(0, 64)) for (const v of members) {
          if (u === v) continue;
          const a = place[v][0] - place[u][0], b = place[v][1] - place[u][1], d = a * a + b * b + 0.05;
          force[v][0] += a / d;
          force[v][1] += b / d;
        }
      }
    }
    for (const [s, t, w] of edges) for (const axis of [0, 1]) {
      const pull = 0.1 * Math.max(0.1, w) * (place[t][axis] - place[s][axis]);
      force[s][axis] += pull;
      force[t][axis] -= pull;
    }
    const step = 1 - round / rounds;
    place.forEach((p, v) => {
      const size = Math.hypot(...force[v]) || 1, limit = Math.min(1, size) * step;
      p[0] += (force[v][0] / size) * limit;
      p[1] += (force[v][1] / size) * limit;
    });
  }
  return place;
}
