(() => {
  "use strict";
  const at = (id) => document.getElementById(id);
  const data = JSON.parse(at("ex-data").textContent);
  const root = at("explorer"), pad = at("ex-pad"), picture = at("ex-picture");
  const [height, width] = data.size, [tileHeight, tileWidth] = data.tile;
  const line = data.axes.length === 1;
  const limit = data.reach, step = (2 * limit) / (data.grid - 1);
  // A tile is centred on its code, so the plane reaches half a tile beyond the last codes.
  const edge = limit + step / 2;
  const sheets = new Map();
  // Through the code of a real image if there is one: the origin decodes to a blur of everything.
  const start = Math.min(1, data.starts.length - 1);
  let state = { a: data.first[0], b: data.first[1], start, x: 0, y: 0 };
  let sheet = null, turn = 0, drawing = false;

  const name = (k) => "z" + String(data.axes[k] + 1).replace(/\d/g, (c) => "₀₁₂₃₄₅₆₇₈₉"[c]);
  const clamp = (value) => Math.min(limit, Math.max(-limit, value));
  const show = (value) => value.toFixed(2).replace("-", "−");

  // ----- the sheet of a plane: decoded once, kept -----

  function load(key) {
    if (!sheets.has(key)) {
      sheets.set(key, new Promise((done, failed) => {
        const image = new Image();
        image.onload = () => {
          const canvas = document.createElement("canvas");
          canvas.width = image.width;
          canvas.height = image.height;
          const context = canvas.getContext("2d", { willReadFrequently: true });
          context.drawImage(image, 0, 0);
          done({ canvas, pixels: context.getImageData(0, 0, image.width, image.height) });
        };
        image.onerror = () => failed(new Error("the images of plane " + key + " are damaged"));
        image.src = data.sheets[key];
      }));
    }
    return sheets.get(key);
  }

  async function choose() {
    sheet = null;
    const mine = ++turn, [a, b] = [data.axes[state.a], data.axes[state.b]];
    const key = state.start + ":" + Math.min(a, b) + "-" + Math.max(a, b);
    root.dataset.wanted = key;
    const found = await load(key);
    if (mine !== turn) return;
    // A sheet has the lower axis to the right; for the other order it is read turned.
    sheet = { ...found, swapped: a > b };
    root.dataset.key = key;
    draw();
  }

  // ----- the image under the pointer: the four nearest, blended -----

  const small = document.createElement("canvas");
  small.width = width;
  small.height = height;
  const smallContext = small.getContext("2d", { willReadFrequently: true });
  root.blended = small; // for tests: what is shown, before the browser enlarges it
  const blended = smallContext.createImageData(width, height);

  function blend() {
    const place = (value) => {
      const position = (value + limit) / step;
      const low = Math.min(data.grid - 2, Math.max(0, Math.floor(position)));
      return [low, position - low];
    };
    let [column, right] = place(state.x), [row, down] = line ? [0, 0] : place(state.y);
    if (sheet.swapped) [column, right, row, down] = [row, down, column, right];
    const source = sheet.pixels.data, stride = sheet.pixels.width * 4, out = blended.data;
    const nextColumn = tileWidth * 4, nextRow = line ? 0 : tileHeight * stride;
    const weights = [(1 - right) * (1 - down), right * (1 - down), (1 - right) * down, right * down];
    for (let y = 0; y < height; y++) {
      let from = (row * tileHeight + y) * stride + column * nextColumn, to = y * width * 4;
      for (let k = 0; k < width * 4; k++, from++, to++) {
        out[to] = weights[0] * source[from] + weights[1] * source[from + nextColumn]
          + weights[2] * source[from + nextRow] + weights[3] * source[from + nextRow + nextColumn]
          + 0.5;
      }
    }
    smallContext.putImageData(blended, 0, 0);
  }

  // ----- drawing -----

  function fit(canvas) {
    const scale = Math.min(3, window.devicePixelRatio || 1);
    const box = canvas.getBoundingClientRect();
    const size = [Math.round(box.width * scale), Math.round(box.height * scale)];
    if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
    const context = canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.imageSmoothingEnabled = true;
    context.imageSmoothingQuality = "high";
    return [context, size[0], size[1], scale];
  }

  function drawPad() {
    const [context, w, h, scale] = fit(pad);
    const toX = (value) => ((value + edge) / (2 * edge)) * w;
    const toY = (value) => (line ? h / 2 : ((edge - value) / (2 * edge)) * h);
    context.fillStyle = "#10161b";
    context.fillRect(0, 0, w, h);
    if (at("ex-map").checked) {
      const rows = line ? 1 : data.grid;
      for (let row = 0; row < rows; row++) {
        for (let column = 0; column < data.grid; column++) {
          const [i, j] = sheet.swapped ? [row, column] : [column, row];
          const left = Math.round((column * w) / data.grid);
          const top = Math.round(((rows - 1 - row) * h) / rows);
          const cellWidth = Math.round(((column + 1) * w) / data.grid) - left;
          const cellHeight = Math.round(((rows - row) * h) / rows) - top;
          let box = [left, top, cellWidth, cellHeight];
          if (cellWidth * height !== cellHeight * width) {
            const shrink = Math.min(cellWidth / width, cellHeight / height);
            const size = [width * shrink, height * shrink];
            box = [left + (cellWidth - size[0]) / 2, top + (cellHeight - size[1]) / 2, ...size];
          }
          context.drawImage(sheet.canvas, i * tileWidth, j * tileHeight, width, height, ...box);
        }
      }
      context.fillStyle = "rgba(16,22,27,0.45)";
      context.fillRect(0, 0, w, h);
    }
    context.lineWidth = scale;
    context.strokeStyle = "rgba(255,255,255,0.4)";
    context.beginPath();
    context.moveTo(0, toY(0));
    context.lineTo(w, toY(0));
    if (!line) {
      context.moveTo(toX(0), 0);
      context.lineTo(toX(0), h);
    }
    for (const radius of [1, 2, 3]) {
      const [across, up] = [(radius / (2 * edge)) * w, (radius / (2 * edge)) * h];
      if (line) {
        for (const side of [-1, 1]) {
          context.moveTo(toX(side * radius), 0.25 * h);
          context.lineTo(toX(side * radius), 0.75 * h);
        }
      } else {
        context.moveTo(toX(0) + across, toY(0));
        context.ellipse(toX(0), toY(0), across, up, 0, 0, 2 * Math.PI);
      }
    }
    context.stroke();
    if (at("ex-dots").checked) {
      for (let k = 0; k < data.dots.length; k++) {
        const dot = data.dots[k];
        context.beginPath();
        context.arc(toX(dot[state.a]), toY(line ? 0 : dot[state.b]), 3 * scale, 0, 2 * Math.PI);
        context.fillStyle = data.palette[data.dotColours[k]];
        context.fill();
        context.lineWidth = 0.75 * scale;
        context.strokeStyle = "rgba(255,255,255,0.8)";
        context.stroke();
      }
    }
    const [x, y] = [toX(state.x), toY(line ? 0 : state.y)];
    for (const [colour, thick] of [["#10161b", 5], ["#ffd166", 2.5]]) {
      context.beginPath();
      context.arc(x, y, 9 * scale, 0, 2 * Math.PI);
      context.lineWidth = thick * scale;
      context.strokeStyle = colour;
      context.stroke();
    }
  }

  function draw() {
    if (!sheet || drawing) return;
    drawing = true;
    requestAnimationFrame(() => {
      drawing = false;
      if (!sheet) return;
      blend();
      const [context, w, h] = fit(picture);
      context.drawImage(small, 0, 0, w, h);
      drawPad();
      tell();
    });
  }

  function tell() {
    const where = line
      ? name(state.a) + " = " + show(state.x)
      : name(state.a) + " = " + show(state.x) + ", " + name(state.b) + " = " + show(state.y);
    at("ex-where").textContent = where;
    picture.setAttribute("aria-label", "The decoder's image at " + where);
    at("ex-x-name").textContent = name(state.a);
    at("ex-y-name").textContent = name(state.b);
    at("ex-x").value = String(state.x);
    at("ex-y").value = String(state.y);
    at("ex-x").setAttribute("aria-valuetext", show(state.x));
    at("ex-y").setAttribute("aria-valuetext", show(state.y));
    root.dataset.x = state.x.toFixed(3);
    root.dataset.y = state.y.toFixed(3);
  }

  // ----- what the visitor does -----

  function move(x, y) {
    state.x = clamp(x);
    state.y = line ? 0 : clamp(y);
    draw();
  }

  function home() {
    const code = data.starts[state.start].code;
    move(code[state.a], line ? 0 : code[state.b]);
  }

  function point(event) {
    const box = pad.getBoundingClientRect();
    const along = (event.clientX - box.left) / box.width, down = (event.clientY - box.top) / box.height;
    move((2 * along - 1) * edge, (1 - 2 * down) * edge);
  }

  pad.addEventListener("pointerdown", (event) => {
    pad.setPointerCapture(event.pointerId);
    pad.focus({ preventScroll: true });
    point(event);
    event.preventDefault();
  });
  pad.addEventListener("pointermove", (event) => {
    if (pad.hasPointerCapture(event.pointerId)) point(event);
  });
  pad.addEventListener("keydown", (event) => {
    const far = event.shiftKey ? 0.5 : 0.1;
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Home") home();
    else if (ways[event.key]) {
      const [dx, dy] = ways[event.key];
      move(state.x + far * dx, state.y + far * dy);
    } else return;
    event.preventDefault();
  });
  for (const id of ["ex-x", "ex-y"]) {
    at(id).min = String(-limit);
    at(id).max = String(limit);
    at(id).addEventListener("input", () => move(Number(at("ex-x").value), Number(at("ex-y").value)));
  }
  at("ex-home").addEventListener("click", home);
  for (const id of ["ex-map", "ex-dots"]) at(id).addEventListener("change", draw);

  for (const id of ["ex-a", "ex-b"]) {
    data.axes.forEach((_, k) => at(id).add(new Option(name(k), String(k))));
  }
  data.starts.forEach((start, k) => at("ex-start").add(new Option(start.name, String(k))));

  function changed(event) {
    const before = { ...state };
    state.a = Number(at("ex-a").value);
    state.b = Number(at("ex-b").value);
    state.start = Number(at("ex-start").value);
    // The same axis twice is no plane: the other menu takes the axis that became free.
    if (!line && state.a === state.b) {
      if (event.target.id === "ex-a") state.b = before.a;
      else state.a = before.b;
    }
    at("ex-a").value = String(state.a);
    at("ex-b").value = String(state.b);
    choose();
    home();
  }
  for (const id of ["ex-a", "ex-b", "ex-start"]) at(id).addEventListener("change", changed);

  at("ex-a").value = String(state.a);
  at("ex-b").value = String(state.b);
  at("ex-start").value = String(state.start);
  if (line) {
    root.classList.add("ex-line");
    for (const id of ["ex-b", "ex-b-label", "ex-y-label"]) at(id).hidden = true;
  }
  picture.style.aspectRatio = width + " / " + height;
  if (!line) pad.style.aspectRatio = width + " / " + height;
  if (data.starts.length === 1) at("ex-start").disabled = true;
  new ResizeObserver(draw).observe(pad);
  choose();
  home();
})();
