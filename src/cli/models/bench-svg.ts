import type { BenchLevel } from '../../gateway/probe/bench-level.ts';

const width = 640;
const height = 360;
const edge = { left: 60, right: 60, top: 40, bottom: 50 };
const colors = { throughput: '#2563eb', firstToken: '#d97706', text: '#334155', line: '#cbd5e1' };

/** A plot of throughput and of the time to the first token against parallelism. */
export function benchSvg(model: string, levels: readonly BenchLevel[]): string {
  const throughput = levels.map(({ tokensPerSecond }) => tokensPerSecond);
  const firstToken = levels.map(({ firstTokenP95 = 0 }) => firstTokenP95);
  const x = (index: number) =>
    edge.left + ((width - edge.left - edge.right) * (index + 0.5)) / Math.max(1, levels.length);
  const y = (value: number, most: number) =>
    height - edge.bottom - ((height - edge.top - edge.bottom) * value) / (most || 1);
  const curve = (values: readonly number[], color: string) => {
    const most = Math.max(...values);
    const points = values.map((value, index) => `${rounded(x(index))},${rounded(y(value, most))}`);
    const dots = points.map((point) => {
      const [cx, cy] = point.split(',');
      return `<circle cx="${cx}" cy="${cy}" r="4" fill="${color}"/>`;
    });
    return `<polyline points="${points.join(' ')}" fill="none" stroke="${color}" stroke-width="2"/>${dots.join('')}`;
  };
  const words = (at: { x: number; y: number; anchor?: string; color?: string }, content: string) =>
    `<text x="${rounded(at.x)}" y="${rounded(at.y)}" text-anchor="${at.anchor ?? 'middle'}" ` +
    `fill="${at.color ?? colors.text}">${escaped(content)}</text>`;
  const bottom = height - edge.bottom;
  const parts = [
    `<rect width="${width}" height="${height}" fill="white"/>`,
    words({ x: width / 2, y: 22 }, `${model}: throughput against parallelism`),
    `<line x1="${edge.left}" y1="${bottom}" x2="${width - edge.right}" y2="${bottom}" stroke="${colors.line}"/>`,
    ...levels.map(({ parallel }, index) => words({ x: x(index), y: bottom + 20 }, String(parallel))),
    words({ x: width / 2, y: height - 10 }, 'requests in flight'),
    words({ x: 8, y: edge.top, anchor: 'start', color: colors.throughput }, `${most(throughput)} tokens/s`),
    words(
      { x: width - 8, y: edge.top, anchor: 'end', color: colors.firstToken },
      `first token p95: ${most(firstToken)} ms`,
    ),
    curve(throughput, colors.throughput),
    curve(firstToken, colors.firstToken),
  ];
  const size = `viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="sans-serif" font-size="13">${parts.join('')}</svg>\n`;
}

function most(values: readonly number[]): string {
  return Math.max(0, ...values).toFixed(values.some((value) => value >= 100) ? 0 : 1);
}

function rounded(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** Characters that XML cannot carry are left out. */
function escaped(text: string): string {
  return text.replace(/\p{C}/gu, '').replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
