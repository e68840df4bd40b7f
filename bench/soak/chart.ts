import { Canvas, type Color, type Point, textHeight } from './canvas.ts';

/** One quantity over time. */
export interface Panel {
  title: string;
  /** Written at the right: what to take away from it. */
  note: string;
  color: Color;
  /** Seconds, and the value then; undefined where there was none, which leaves a gap. */
  points: readonly { at: number; value: number | undefined }[];
}

export interface Chart {
  title: string;
  /** One at least, each with its points in the order of time. */
  panels: readonly Panel[];
  /** Seconds at which something happened to all of them. */
  marks: readonly number[];
}

interface Frame {
  left: number;
  top: number;
  width: number;
  height: number;
}

const size = { width: 1200, panel: 210, plot: 140, left: 100, right: 40, head: 70, foot: 60 };
const ink: Color = [38, 42, 51];
const faint: Color = [120, 126, 138];
const grid: Color = [228, 231, 236];
const markColor: Color = [208, 60, 60];

/** Draws the panels below one another, over the same time, and returns the picture as a PNG. */
export function drawChart({ title, panels, marks }: Chart): Buffer {
  const canvas = new Canvas(size.width, size.head + panels.length * size.panel + size.foot);
  canvas.text({ x: size.left, y: 28 }, title, ink);
  const until = Math.max(1, ...panels.flatMap(({ points }) => points.map(({ at }) => at)));
  for (const [index, panel] of panels.entries()) {
    const frame: Frame = {
      left: size.left,
      top: size.head + index * size.panel + (size.panel - size.plot) / 2,
      width: size.width - size.left - size.right,
      height: size.plot,
    };
    drawPanel(canvas, frame, panel, until, marks);
    if (index === panels.length - 1) drawTimes(canvas, frame, until);
  }
  return canvas.png();
}

function drawPanel(
  canvas: Canvas,
  frame: Frame,
  panel: Panel,
  until: number,
  marks: readonly number[],
): void {
  const { left, top, width, height } = frame;
  const highest = Math.max(1, ...panel.points.map(({ value }) => value ?? 0));
  const step = roundStep(highest / 4);
  const limit = Math.ceil(highest / step) * step;
  const place = (at: number, value: number): Point => ({
    x: left + (at / until) * width,
    y: top + height - (value / limit) * height,
  });

  canvas.text({ x: left, y: top - textHeight - 10 }, panel.title, ink);
  canvas.text({ x: left + width, y: top - textHeight - 10 }, panel.note, faint, 'right');
  for (let value = 0; value <= limit; value += step) {
    const y = Math.round(place(0, value).y);
    canvas.rectangle({ x: left, y }, width, 1, value === 0 ? faint : grid);
    canvas.text({ x: left - 12, y: y - textHeight / 2 }, String(value), faint, 'right');
  }
  for (const at of timesUntil(until)) {
    canvas.rectangle({ x: Math.round(place(at, 0).x), y: top }, 1, height, grid);
  }
  for (const at of marks) {
    const x = Math.round(place(at, 0).x);
    for (let y = top; y < top + height; y += 8) canvas.rectangle({ x, y }, 1, 4, markColor);
  }
  drawLine(canvas, panel, place, top + height);
}

/** The area below the line is tinted, so that a value is seen from afar. */
function drawLine(
  canvas: Canvas,
  { points, color }: Panel,
  place: (at: number, value: number) => Point,
  bottom: number,
): void {
  const drawn = points.map(({ at, value }) => (value === undefined ? undefined : place(at, value)));
  for (const [index, to] of drawn.entries()) {
    const from = drawn[index - 1];
    if (!from || !to) continue;
    for (let x = Math.round(from.x); x < Math.round(to.x); x++) {
      const y = Math.round(from.y + ((x - from.x) / (to.x - from.x)) * (to.y - from.y));
      canvas.rectangle({ x, y }, 1, bottom - y, color, 0.1);
    }
  }
  for (const [index, to] of drawn.entries()) {
    const from = drawn[index - 1];
    if (from && to) canvas.line(from, to, color, 2.4);
  }
}

function drawTimes(canvas: Canvas, { left, top, width, height }: Frame, until: number): void {
  const y = top + height + 12;
  for (const at of timesUntil(until)) {
    canvas.text({ x: left + (at / until) * width, y }, String(Number((at / 60).toFixed(2))), faint, 'middle');
  }
  canvas.text({ x: left + width, y: y + textHeight + 14 }, 'minutes', faint, 'right');
}

/** Seconds that get a line: some eight of them, at round minutes. */
function timesUntil(until: number): number[] {
  const step = roundStep(until / 60 / 8, 0.25) * 60;
  return Array.from({ length: Math.floor(until / step) + 1 }, (_, index) => index * step);
}

/** The next of 1, 2, 5, 10, 20 and so on, and no less than `least`, which may be no such number. */
function roundStep(rough: number, least = 1): number {
  if (rough <= least) return least;
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10;
  return factor * power;
}
