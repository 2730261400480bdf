"use strict";
// Draws the views of the page's data. Everything from the data is written as text, never as markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const part = (id) => document.getElementById(id);
  const MANY = 60; // nodes from which on vis-network's own first layout takes long
  const LONGEST = 30; // characters of a label
  const DENSITY = 0.55; // share of the picture that nodes and their labels fill
  const DIM = 0.12;
  let network, nodes, edges, view;

  function element(tag, words, className = "") {
    const made = document.createElement(tag);
    made.textContent = words;
    made.className = className;
    return made;
  }

  const tip = (lines) => element("div", lines.join("\n"), "tip");
  const colours = (list) => new Map(list.map((one) => [one.kind, one.colour]));

  const short = (label) => (label.length > LONGEST ? `${label.slice(0, LONGEST - 1)}…` : label);
  const radius = (node, largest) => 6 + 20 * Math.sqrt(node.size / largest);
  const fontSize = (node) => (node.start ? 22 : 14);

  function drawnNode(node, colour, largest) {
    return {
      id: node.id,
      label: short(node.label),
      title: tip(node.lines),
      shape: node.start ? "diamond" : "dot",
      size: radius(node, largest),
      color: colour,
      font: { size: fontSize(node), strokeWidth: 3, strokeColor: "#ffffff", vadjust: -2 },
    };
  }

  function drawnEdge(line, number, colour, heaviest, both) {
    const few = view.lines.length <= 30;
    return {
      id: number,
      from: line.source,
      to: line.target,
      title: tip(line.lines),
      label: few && line.arrow ? line.kinds.join(", ") : undefined,
      arrows: line.arrow ? { to: { enabled: true, scaleFactor: 0.6 } } : "",
      width: 1 + 5 * Math.sqrt(line.weight / heaviest),
      color: { color: colour, highlight: colour, hover: colour, opacity: view.lines.length > 100 ? 0.35 : 0.6 },
      smooth: both ? { enabled: true, type: "curvedCW", roundness: 0.15 } : { enabled: false },
      font: { size: 10, color: "#555555", strokeWidth: 3, align: "middle" },
    };
  }

  function draw(chosen) {
    view = chosen;
    const kinds = colours(view.kinds), relations = colours(view.relations);
    const largest = Math.max(1, ...view.nodes.map((node) => node.size));
    const heaviest = Math.max(1, ...view.lines.map((line) => line.weight));
    const ways = new Set(view.lines.map((line) => JSON.stringify([line.source, line.target])));
    nodes = new vis.DataSet(view.nodes.map((node) => drawnNode(node, kinds.get(node.kind), largest)));
    edges = new vis.DataSet(view.lines.map((line, number) => {
      const both = ways.has(JSON.stringify([line.target, line.source]));
      return drawnEdge(line, number, relations.get(line.kinds[0]), heaviest, both);
    }));
    if (network) network.destroy();
    document.body.removeAttribute("data-drawn");
    network = new vis.Network(part("canvas"), { nodes, edges }, {
      layout: { randomSeed: 7, improvedLayout: view.nodes.length <= MANY },
      interaction: { hover: true, tooltipDelay: 80, keyboard: { enabled: true, bindToWindow: false } },
      physics: {
        solver: "forceAtlas2Based",
        forceAtlas2Based: { gravitationalConstant: -90, centralGravity: 0.008, springLength: 110, springConstant: 0.06, avoidOverlap: 0.5 },
        stabilization: { iterations: 400, fit: true },
      },
    });
    network.once("stabilized", still);
    network.once("stabilizationIterationsDone", still);
    network.on("selectNode", (event) => select(event.nodes[0]));
    network.on("deselectNode", () => select(null));
    network.on("selectEdge", (event) => event.nodes.length || tell(view.lines[event.edges[0]].lines));
    if (!view.nodes.length) document.body.dataset.drawn = "0";
    part("note").textContent = view.note;
    legend();
    list();
    tell([]);
  }

  function still() {
    network.setOptions({ physics: false }); // a picture that moves cannot be read
    const boxes = spread(network.getPositions());
    nodes.update(boxes.map(({ id, x, y }) => ({ id, x, y })));
    network.fit();
    document.body.dataset.drawn = String(view.nodes.length);
  }

  // Where nodes go so that the picture has the canvas's shape and no label lies on another, or on a node.
  function spread(positions) {
    const pen = document.createElement("canvas").getContext("2d");
    const largest = Math.max(1, ...view.nodes.map((node) => node.size));
    const boxes = view.nodes.map((node) => {
      pen.font = `${fontSize(node)}px arial`;
      const height = 2 * radius(node, largest) + 1.6 * fontSize(node);
      return { id: node.id, ...positions[node.id], w: pen.measureText(short(node.label)).width + 14, h: height };
    });
    const area = boxes.reduce((sum, box) => sum + box.w * box.h, 0) / DENSITY;
    const shape = part("canvas").clientWidth / Math.max(part("canvas").clientHeight, 1);
    fill(boxes, "x", Math.sqrt(area * shape));
    fill(boxes, "y", Math.sqrt(area / shape));
    for (let round = 0, moved = true; moved && round < 500; round += 1) {
      moved = false;
      for (let i = 0; i < boxes.length; i += 1) {
        for (let j = i + 1; j < boxes.length; j += 1) moved = apart(boxes[i], boxes[j]) || moved;
      }
    }
    return boxes;
  }

  // Stretch an axis, half by how far apart nodes are and half by their order: a few far ones do not crowd the rest.
  function fill(boxes, axis, span) {
    const order = [...boxes].sort((a, b) => a[axis] - b[axis]);
    const least = order[0][axis], range = order[order.length - 1][axis] - least || 1;
    order.forEach((box, rank) => {
      box[axis] = (span / 2) * ((box[axis] - least) / range + rank / order.length);
    });
  }

  // Push two boxes off each other, the shorter way, if they overlap; whether they did.
  function apart(a, b) {
    const x = (a.w + b.w) / 2 - Math.abs(a.x - b.x), y = (a.h + b.h) / 2 - Math.abs(a.y - b.y);
    if (x <= 0.5 || y <= 0.5) return false;
    const [axis, by] = x < y ? ["x", x / 2] : ["y", y / 2];
    const way = a[axis] < b[axis] ? -by : by;
    a[axis] += way;
    b[axis] -= way;
    return true;
  }

  function legend() {
    const rows = [...view.kinds.map((one) => [one, ""]), ...view.relations.map((one) => [one, "line"])];
    part("legend").replaceChildren(...rows.map(([one, className]) => {
      const row = element("li", `${one.kind} ${one.count}`, className);
      const sample = element("span", "");
      sample.style.background = one.colour;
      row.prepend(sample);
      return row;
    }));
  }

  function list() {
    const asked = part("search").value.trim().toLowerCase();
    const shown = view.nodes.filter((node) => `${node.label}\n${node.id}`.toLowerCase().includes(asked));
    part("list").replaceChildren(...shown.map((node) => {
      const row = element("button", node.label);
      row.title = node.id;
      row.addEventListener("click", () => find(node.id));
      return row;
    }));
    return shown;
  }

  function find(id) {
    network.selectNodes([id]);
    network.focus(id, { scale: Math.max(network.getScale(), 0.8) });
    select(id);
  }

  function select(id) {
    const near = id === null ? null : new Set([id, ...network.getConnectedNodes(id)]);
    const at = new Set(id === null ? [] : network.getConnectedEdges(id));
    nodes.update(view.nodes.map((node) => {
      const seen = !near || near.has(node.id);
      return { id: node.id, opacity: seen ? 1 : DIM, font: { color: seen ? "#222222" : "#dddddd" } };
    }));
    edges.update(view.lines.map((_, number) => ({ id: number, hidden: near !== null && !at.has(number) })));
    if (id === null) return tell([]);
    const own = view.lines.filter((_, number) => at.has(number)).map((line) => line.lines.join("\n"));
    return tell([...view.nodes.find((node) => node.id === id).lines, "", ...own]);
  }

  function tell([first, ...rest]) {
    part("told").replaceChildren(...(first === undefined ? [] : [element("b", first), element("div", rest.join("\n"))]));
  }

  document.title = data.title;
  part("title").textContent = data.title;
  part("view").hidden = data.views.length < 2;
  part("view").replaceChildren(...data.views.map((one) => element("option", one.name)));
  part("view").addEventListener("change", () => draw(data.views[part("view").selectedIndex]));
  part("search").addEventListener("input", list);
  part("search").addEventListener("keydown", (event) => {
    const [first] = event.key === "Enter" ? list() : [];
    if (first) find(first.id);
  });
  draw(data.views[0]);
})();
