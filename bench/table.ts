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
  console.table(
    Object.fromEntries(
      rows.map(({ what, unit, measured, floor, goal }) => [
        what,
        {
          measured: `${twoDigits(measured)} ${unit}`,
          floor: floor === undefined ? '' : twoDigits(floor),
          ratio: floor === undefined ? '' : (measured / floor).toFixed(2),
          goal: goal ? goalText(goal, measured, floor) : '',
        },
      ]),
    ),
  );
}

function goalText({ of, bound, value }: Goal, measured: number, floor = 0): string {
  const reached = of === 'ratio' ? measured / floor : of === 'added' ? measured - floor : measured;
  const isMet = bound === 'at most' ? reached <= value : reached >= value;
  const words = of === undefined ? `${bound} ${value}` : `${of} ${bound} ${value}`;
  return `${words}: ${isMet ? 'met' : `missed (${twoDigits(reached)})`}`;
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
