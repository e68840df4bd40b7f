/** A measurement as a person reads it. */
export interface Measurement {
  what: string;
  unit: string;
  measured: number;
  /** The same work without Offsite, in the same run. */
  floor?: number | undefined;
  goal?: Goal | undefined;
}

/** What is aimed at: for the value itself, for its ratio to the floor, or for what it has more than the floor. */
interface Goal {
  of?: 'ratio' | 'added';
  bound: 'at most' | 'at least';
  value: number;
}

/** Prints one table: two digits, the ratio to the floor, and the goal. */
export function printMeasurements(rows: readonly Measurement[]): void {
  printTable(
    rows.map(({ what, unit, measured, floor, goal }) => ({
      '': what,
      measured: `${twoDigits(measured)} ${unit}`,
      floor: floor === undefined ? '' : twoDigits(floor),
      ratio: floor === undefined ? '' : (measured / floor).toFixed(2),
      goal: goal ? goalText(goal, measured, floor) : '',
    })),
  );
}

/** Prints rows with the same columns. Numbers, with their units, stand at the right of their column. */
export function printTable(rows: readonly Readonly<Record<string, unknown>>[]): void {
  const columns = Object.keys(rows[0] ?? {});
  const lines = [columns, ...rows.map((row) => columns.map((column) => String(row[column] ?? '')))];
  const widths = columns.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0)));
  const areNumbers = columns.map((column) =>
    rows.every((row) => /^(-|[\d.]+( \S+)?|)$/.test(String(row[column] ?? ''))),
  );
  for (const line of lines) {
    const cells = line.map((cell, at) =>
      areNumbers[at] ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0),
    );
    console.log(cells.join('  ').trimEnd());
  }
}

function goalText({ of, bound, value }: Goal, measured: number, floor = 0): string {
  const reached = of === 'ratio' ? measured / floor : of === 'added' ? measured - floor : measured;
  const isMet = bound === 'at most' ? reached <= value : reached >= value;
  const words = of === undefined ? `${bound} ${value}` : `${of} ${bound} ${value}`;
  const seen = of === 'ratio' ? reached.toFixed(2) : twoDigits(reached);
  return `${words}: ${isMet ? 'met' : `missed (${seen})`}`;
}

/** Two digits below 100, whole numbers above. */
export function twoDigits(value: number): string {
  if (!Number.isFinite(value)) return '-';
  return Math.abs(value) >= 10 ? value.toFixed(0) : String(Number(value.toPrecision(2)));
}

/** The number that a share of the others is below. */
export function quantile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export function median(numbers: readonly number[]): number {
  return quantile(numbers, 0.5);
}
