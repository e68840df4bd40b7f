import { element, escaped } from '../../svg.ts';

export interface Line {
  name: string;
  /** In CSS syntax. */
  color: string;
  /** One for each place of the chart; undefined where there is none. */
  values: readonly (number | undefined)[];
}

export interface LineChart {
  title: string;
  /** What the places are. */
  places: string;
  /** From left to right, at equal distances. */
  at: readonly string[];
  /** What the values are. */
  quantity: string;
  /** Values above are drawn at the upper edge. */
  most: number;
  lines: readonly Line[];
}

const size = { width: 960, height: 420, left: 70, right: 260, top: 70, bottom: 60 };
const ink = '#262a33';
const faint = '#787e8a';
const grid = '#e4e7ec';
const steps = 5;

/** Draws lines over places, and returns the picture as an SVG document. */
export function drawLines({ title, places, at, quantity, most, lines }: LineChart): string {
  const right = size.width - size.right;
  const bottom = size.height - size.bottom;
  const xOf = (index: number) => size.left + (index / Math.max(1, at.length - 1)) * (right - size.left);
  const yOf = (value: number) => bottom - (Math.min(value, most) / most) * (bottom - size.top);
  const levels = Array.from({ length: steps + 1 }, (_, index) => (most / steps) * index);
  const parts = [
    element('title', {}, [escaped(title)]),
    element('rect', { width: '100%', height: '100%', fill: '#fff' }),
    text(size.left, 32, title, ink),
    text(size.left, 54, quantity, faint),
    ...levels.flatMap((level) => [
      line([size.left, yOf(level)], [right, yOf(level)], grid, 1),
      text(size.left - 10, yOf(level) + 5, String(Number(level.toPrecision(3))), faint, 'end'),
    ]),
    ...at.map((place, index) => text(xOf(index), bottom + 22, place, faint, 'middle')),
    text(right, bottom + 46, places, faint, 'end'),
    ...lines.flatMap(({ name, color, values }, order) => {
      const points = values.flatMap((value, index) =>
        value === undefined ? [] : ([[xOf(index), yOf(value)]] as [number, number][]),
      );
      const y = size.top + 14 + order * 24;
      return [
        ...points.slice(1).map((point, index) => line(points[index] ?? point, point, color, 2.4)),
        ...points.map(([cx, cy]) => element('circle', { cx, cy, r: 3.5, fill: color })),
        line([right + 20, y - 5], [right + 44, y - 5], color, 2.4),
        text(right + 52, y, name, ink),
      ];
    }),
  ];
  const attributes = {
    xmlns: 'http://www.w3.org/2000/svg',
    viewBox: `0 0 ${size.width} ${size.height}`,
    'font-family': 'sans-serif',
    'font-size': 14,
  };
  return `${element('svg', attributes, ['\n', parts.join('\n'), '\n'])}\n`;
}

function line(
  [x1, y1]: readonly [number, number],
  [x2, y2]: readonly [number, number],
  stroke: string,
  width: number,
): string {
  return element('line', { x1, y1, x2, y2, stroke, 'stroke-width': width, 'stroke-linecap': 'round' });
}

function text(x: number, y: number, said: string, fill: string, anchor?: 'middle' | 'end'): string {
  return element('text', { x, y, fill, 'text-anchor': anchor }, [escaped(said)]);
}
