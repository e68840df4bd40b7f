/** What a bound counts. `heap` is a fraction of this process's heap limit. */
type Unit = 'bytes' | 'characters' | 'heap' | 'milliseconds' | 'times';

export interface Bound {
  most: number;
  unit: Unit;
  /** What the bound limits, in a few words; docs/reference/bounds.md shows them. */
  of: string;
}

/** The bounds of a channel in one dimension, by name; or a text that says why it needs none. */
export type Dimension = Readonly<Record<string, Bound>> | string;

/** The bounds as plain numbers, which is what the code reads. */
type Numbers<Given extends Dimension> = Given extends string
  ? Readonly<Record<never, number>>
  : { readonly [Name in keyof Given]: number };

export type Sender =
  | 'the sandbox'
  | 'a model'
  | 'the service'
  | "the suite's author"
  | "a task's author"
  | 'a caller'
  | 'the fleet'
  | 'anyone';

export interface ChannelDescription<
  Bytes extends Dimension = Dimension,
  Time extends Dimension = Dimension,
  Count extends Dimension = Dimension,
> {
  sender: Sender;
  /** What arrives, and how. */
  over: string;
  bytes: Bytes;
  time: Time;
  count: Count;
}

/** One way for an untrusted sender to send bytes to this process. */
export interface Channel<
  Bytes extends Dimension = Dimension,
  Time extends Dimension = Dimension,
  Count extends Dimension = Dimension,
> {
  readonly bytes: Numbers<Bytes>;
  readonly time: Numbers<Time>;
  readonly count: Numbers<Count>;
  readonly description: ChannelDescription<Bytes, Time, Count>;
}

/** Makes the channels of a sender, except those that name another one. */
export function channelOf(sender: Sender) {
  return <Bytes extends Dimension, Time extends Dimension, Count extends Dimension>(
    described: Omit<ChannelDescription<Bytes, Time, Count>, 'sender'> & { sender?: Sender },
  ): Channel<Bytes, Time, Count> => ({
    bytes: numbersOf(described.bytes),
    time: numbersOf(described.time),
    count: numbersOf(described.count),
    description: { sender, ...described },
  });
}

function numbersOf<Given extends Dimension>(given: Given): Numbers<Given> {
  const entries = typeof given === 'string' ? [] : Object.entries(given);
  return Object.fromEntries(entries.map(([name, { most }]) => [name, most])) as Numbers<Given>;
}

export const KiB = 1024;
export const MiB = 1024 ** 2;
export const GiB = 1024 ** 3;

const boundIn =
  (unit: Unit) =>
  (most: number, of: string): Bound => ({ most, unit, of });

export const bytes = boundIn('bytes');
export const characters = boundIn('characters');
export const partOfHeap = boundIn('heap');
export const milliseconds = boundIn('milliseconds');
export const times = boundIn('times');
