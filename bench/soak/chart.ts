import { element, escaped, rounded } from '../svg.ts';

/** One quantity over time. */
export interface Panel {
  title: string;
  /** Printed at the right: the conclusion. */
  note: string;
  /** In CSS syntax. */
  color: string;
  /** Seconds, and the value at that time; undefined if there was none, which leaves a gap. */
  points: readonly { at: number; value: number | undefined }[];
}

export interface Chart {
  title: string;
  /** At least one, each with its points in order of time. */
  panels: readonly Panel[];
  /** Seconds of events that affect all panels. */
  marks: readonly number[];
}

interface Frame {
  left: number;
  top: number;
  width: number;
  height: number;
}

interface Point {
  x: number;
  y: number;
}

const size = { width: 1200, panel: 210, plot: 140, left: 100, right: 40, head: 70, foot: 60 };
const ink = '#262a33';
const faint = '#787e8a';
const grid = '#e4e7ec';
const markColor = '#d03c3c';

/** Draws the panels below one another, over the same period, and returns the picture as an SVG document. */
export function drawChart({ title, panels, marks }: Chart): string {
  const height = size.head + panels.length * size.panel + size.foot;
  const until = Math.max(1, ...panels.flatMap(({ points }) => points.map(({ at }) => at)));
  const drawn = panels.flatMap((panel, index) => {
    const frame: Frame = {
      left: size.left,
      top: size.head + index * size.panel + (size.panel - size.plot) / 2,
      width: size.width - size.left - size.right,
      height: size.plot,
    };
    const isLast = index === panels.length - 1;
    return [...panelOf(frame, panel, until, marks), ...(isLast ? timesOf(frame, until) : [])];
  });
  const whole = [
    element('title', {}, [escaped(title)]),
    element('rect', { width: '100%', height: '100%', fill: '#fff' }),
    text({ x: size.left, y: 42 }, title, ink),
    ...drawn,
  ];
  const attributes = {
    xmlns: 'http://www.w3.org/2000/svg',
    viewBox: `0 0 ${size.width} ${height}`,
    'font-family': 'sans-serif',
    'font-size': 15,
  };
  return `${element('svg', attributes, ['\n', whole.join('\n'), '\n'])}\n`;
}

function panelOf(frame: Frame, panel: Panel, until: number, marks: readonly number[]): string[] {
  const { left, top, width, height } = frame;
  const bottom = top + height;
  const highest = Math.max(1, ...panel.points.map(({ value }) => value ?? 0));
  const step = roundStep(highest / 4);
  const limit = Math.ceil(highest / step) * step;
  const pointOf = (at: number, value: number): Point => ({
    x: left + (at / until) * width,
    y: bottom - (value / limit) * height,
  });
  const values = Array.from({ length: Math.floor(limit / step) + 1 }, (_, index) => index * step);
  return [
    text({ x: left, y: top - 12 }, panel.title, ink),
    text({ x: left + width, y: top - 12 }, panel.note, faint, 'end'),
    ...values.flatMap((value) => {
      const { y } = pointOf(0, value);
      return [
        line({ x: left, y }, { x: left + width, y }, value === 0 ? faint : grid),
        text({ x: left - 12, y: y + 5 }, String(value), faint, 'end'),
      ];
    }),
    ...timesUntil(until).map((at) => {
      const { x } = pointOf(at, 0);
      return line({ x, y: top }, { x, y: bottom }, grid);
    }),
    ...marks.map((at) => {
      const { x } = pointOf(at, 0);
      return line({ x, y: top }, { x, y: bottom }, markColor, '4');
    }),
    ...curves(panel, pointOf, bottom),
  ];
}

/** A line for each stretch without a gap. The area below it is tinted, so that a value is easy to see. */
function curves(
  { points, color }: Panel,
  pointOf: (at: number, value: number) => Point,
  bottom: number,
): string[] {
  const stretches: Point[][] = [[]];
  for (const { at, value } of points) {
    if (value === undefined) stretches.push([]);
    else stretches.at(-1)?.push(pointOf(at, value));
  }
  return stretches.flatMap((stretch) => {
    const [first] = stretch;
    const last = stretch.at(-1);
    if (!first || !last) return [];
    const path = stretch.map(({ x, y }) => `${rounded(x)} ${rounded(y)}`).join('L');
    const area = `M${rounded(first.x)} ${bottom}L${path}L${rounded(last.x)} ${bottom}Z`;
    return [
      element('path', { d: area, fill: color, 'fill-opacity': '0.1' }),
      element('path', {
        d: `M${path}`,
        fill: 'none',
        stroke: color,
        'stroke-width': '2.4',
        'stroke-linejoin': 'round',
      }),
    ];
  });
}

function timesOf({ left, top, width, height }: Frame, until: number): string[] {
  const y = top + height + 24;
  return [
    ...timesUntil(until).map((at) => {
      const minutes = String(Number((at / 60).toFixed(2)));
      return text({ x: left + (at / until) * width, y }, minutes, faint, 'middle');
    }),
    text({ x: left + width, y: y + 26 }, 'minutes', faint, 'end'),
  ];
}

/** `y` is the text's base line; `anchor` says which part of the text is at `x`. */
function text({ x, y }: Point, said: string, fill: string, anchor?: 'middle' | 'end'): string {
  return element('text', { x, y, fill, 'text-anchor': anchor }, [escaped(said)]);
}

function line(from: Point, to: Point, stroke: string, dashes?: string): string {
  const ends = { x1: from.x, y1: from.y, x2: to.x, y2: to.y };
  return element('line', { ...ends, stroke, 'stroke-dasharray': dashes });
}

/** Seconds that get a grid line: about eight of them, at round minutes. */
function timesUntil(until: number): number[] {
  const step = roundStep(until / 60 / 8, 0.25) * 60;
  return Array.from({ length: Math.floor(until / step) + 1 }, (_, index) => index * step);
}

/** The smallest of 1, 2, 5, 10, 20 and so on that is at least `least`. */
function roundStep(rough: number, least = 1): number {
  if (rough <= least) return least;
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10;
  return factor * power;
}
