import { Context, type ContextParts, contextParts, type PlaceOptions } from '../api/context.ts';
import { emptiedText } from '../api/data-folder.ts';
import type { Clock } from '../base/clock.ts';
import { isDataFolder } from '../ledger/data-folder.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Config } from '../suite/config-file.ts';
import { type Interruption, type InterruptionOptions, interruption } from './interruption.ts';
import type { Progress, ShownProgress } from './output/progress.ts';
import { openTerminal, type Terminal } from './terminal.ts';

interface TerminalParts {
  terminal?: Terminal | undefined;
}

interface HowToOpen extends TerminalParts {
  suite?: string | undefined;
  isLocal?: boolean;
  creates?: boolean;
  clock?: Clock | undefined;
}

/** What a command works with: a context, with the terminal on which it prints, and its signals. */
export class CommandContext extends Context {
  readonly out: Terminal['out'];
  readonly err: Terminal['err'];

  constructor({ terminal, ...parts }: ContextParts & TerminalParts) {
    super(parts);
    const { out, err } = terminal ?? openTerminal(this.redact);
    this.out = out;
    this.err = err;
    this.note = (message) => err.print(message);
    if (this.config.moved.length > 0) this.note(movedText(this.config));
    const emptied = parts.creates ? emptiedText(this.dataFolder, this.env) : undefined;
    if (emptied) err.print(emptied);
  }

  /** Opens it as {@link contextParts} says, with the environment of this process. */
  static open(options: PlaceOptions, { clock, terminal, ...how }: HowToOpen = {}): CommandContext {
    return new CommandContext({
      ...contextParts(options, { ...how, env: process.env }),
      clock,
      terminal,
    });
  }

  /**
   * Opens it for something that the data folder has, with the configuration beside its suite, as a run of
   * that suite does.
   *
   * @param suiteOf finds the suite's file
   */
  static async openFor(
    options: PlaceOptions,
    suiteOf: (ledger: Ledger) => string | undefined,
    how: HowToOpen = {},
  ): Promise<CommandContext> {
    const parts = contextParts(options, { env: process.env });
    const { dataFolder } = parts;
    if (!isDataFolder(dataFolder)) return CommandContext.open(options, how);
    await using context = new Context(parts);
    const suite = suiteOf(context.ledger({ isChecked: false }));
    return CommandContext.open({ ...options, dataFolder }, { ...how, suite });
  }

  /** Shows what the command does while it does it, also what it notes. Dispose of it. */
  async progress({ json, ...how }: ShownProgress & { json?: true | undefined } = {}): Promise<Progress> {
    // Only commands that run something need this module and its libraries.
    const { openProgress } = await import('./output/progress.ts');
    const progress = await openProgress(this, { plain: json === true, ...how });
    this.note = progress.note;
    return progress;
  }

  /**
   * Makes the first SIGINT or SIGTERM abort a signal. Call it before anything is opened, so that its handlers
   * stay until everything is closed.
   */
  interruption(options?: InterruptionOptions): Interruption {
    const interrupted = interruption((message) => this.note(message), options);
    this.closeWith(interrupted);
    interrupted.signal.addEventListener('abort', () => this.end(), { once: true });
    return interrupted;
  }
}

function movedText({ file, moved }: Config): string {
  const keys = `${moved.join(', ')}: ${moved.length === 1 ? 'it belongs' : 'they belong'}`;
  return `${file}: ${keys} under \`advanced:\` now; the next release no longer reads the old place`;
}
