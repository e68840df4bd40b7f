import type { BatchEvent } from '../../agent/run-batch.ts';
import type { Clock } from '../../base/clock.ts';
import type { Content, Output } from '../../text/output.ts';
import { ours, type Printable, text } from '../../text/printable.ts';
import { elapsed } from '../../text/quantities.ts';
import { Activity, type ActivityEvent, activityOf } from './activity.ts';
import { activityLines, trialWords, type VerdictWords } from './activity-text.ts';
import { eventLines } from './event-lines.ts';
import { type Display, frameOf } from './frame.ts';

interface Surroundings {
  /** Prints on the process's standard error. */
  err: Output;
  clock: Clock;
  env: NodeJS.ProcessEnv;
}

export interface ShownProgress {
  /** No live lines, even on a terminal. */
  plain?: boolean;
  words?: VerdictWords;
  /** Whether no model does any work. */
  isRehearsal?: boolean;
}

/** Terminal cells of a plain line, if the environment does not say. */
const plainWidth = 100;

/** Shows live lines on a terminal; elsewhere, and in CI, prints plain lines. */
export async function openProgress(
  { err, clock, env }: Surroundings,
  { plain = false, words = trialWords, isRehearsal }: ShownProgress = {},
): Promise<Progress> {
  const activity = new Activity(() => performance.now());
  if (plain || !isLive(err, env)) {
    const width = Number(env.COLUMNS) || plainWidth;
    const lines = () => (activity.isBusy ? activityLines(activity.state(), words, width) : undefined);
    return new Progress(activity, plainDisplay({ err, clock, lines }), isRehearsal);
  }
  // Commands that show nothing live start without this module's libraries.
  const { liveDisplay } = await import('./live-display.ts');
  const shown = (content: Content) => err.shown(content);
  return new Progress(
    activity,
    liveDisplay({
      stream: process.stderr,
      err,
      frame: (size) => frameOf(activity.state(), { size, words, shown }),
    }),
    isRehearsal,
  );
}

/** Whether lines can be drawn over, and somebody watches. */
function isLive(err: Output, { TERM, CI }: NodeJS.ProcessEnv): boolean {
  const isCi = CI !== undefined && CI !== '' && CI !== 'false' && CI !== '0';
  return err.isTerminal && TERM !== 'dumb' && !isCi;
}

/** Shows the user what a command does while it does it. Disposing removes the live lines. */
export class Progress implements Disposable {
  readonly #activity: Activity;
  readonly #display: Display;
  readonly #lineOf: ReturnType<typeof eventLines>;

  constructor(activity: Activity, display: Display, isRehearsal?: boolean) {
    this.#lineOf = eventLines(isRehearsal);
    this.#activity = activity;
    this.#display = display;
  }

  /** Shows what happens to a batch. */
  readonly event = (event: BatchEvent): void => {
    const activity = activityOf(event);
    if (activity) this.#activity.update(activity);
    const line = this.#lineOf(event);
    if (line === undefined) this.#display.changed();
    else this.#display.print(line);
  };

  /** Shows what happens to something else. */
  readonly update = (event: ActivityEvent): void => {
    this.#activity.update(event);
    this.#display.changed();
  };

  readonly note = (message: Content): void => this.#display.print(message);

  /** Shows a step while it runs. Returns what the step returns. */
  readonly step = async <Result>(title: string, work: () => Promise<Result>): Promise<Result> => {
    this.update({ kind: 'step', title, state: 'begins' });
    try {
      return await work();
    } finally {
      this.update({ kind: 'step', title, state: 'ends' });
    }
  };

  /** Like {@link step}, and prints how long the step took. */
  readonly during = async <Result>(title: string, work: () => Promise<Result>): Promise<Result> => {
    const startedAt = performance.now();
    const took = () => ours(elapsed(performance.now() - startedAt));
    if (!this.#display.isLive) this.note(text`${title} ...`);
    let ended = ours('failed after');
    try {
      const result = await this.step(title, work);
      ended = ours('done in');
      return result;
    } finally {
      this.note(text`${title}: ${ended} ${took()}`);
    }
  };

  [Symbol.dispose](): void {
    this.#display[Symbol.dispose]();
  }
}

export interface PlainParts {
  err: Output;
  clock: Clock;
  /** Says what is going on; undefined if nothing is. */
  lines(): Printable | undefined;
}

/** Prints plain lines, and says what is going on when nothing was printed for a while. */
export function plainDisplay({ err, clock, lines }: PlainParts): Display {
  const beating = heartbeat(clock, () => {
    const content = lines();
    if (content) err.print(content);
  });
  return {
    isLive: false,
    print(content) {
      err.print(content);
      beating.printed();
    },
    changed: () => undefined,
    [Symbol.dispose]: () => beating[Symbol.dispose](),
  };
}

/** Milliseconds without a line after which a display without live lines says that work continues. */
const silenceMs = 15_000;

interface Heartbeat extends Disposable {
  /** Notes that something was printed. */
  printed(): void;
}

/** Calls `beat` when nothing was printed for 15 s, and at most once in 15 s. Disposing ends that. */
export function heartbeat(clock: Clock, beat: () => void): Heartbeat {
  const over = new AbortController();
  let printedAt = clock.now();
  const listen = async () => {
    for (let waitMs = silenceMs; ; ) {
      await clock.sleep(waitMs, over.signal);
      const silentMs = clock.now() - printedAt;
      // A clock that was set back must not keep it silent.
      const isDue = silentMs >= silenceMs || silentMs < 0;
      waitMs = isDue ? silenceMs : silenceMs - silentMs;
      if (!isDue) continue;
      beat();
      printedAt = clock.now();
    }
  };
  listen().catch((error: unknown) => {
    if (!over.signal.aborted) throw error;
  });
  return {
    printed() {
      printedAt = clock.now();
    },
    [Symbol.dispose]: () => over.abort(),
  };
}
