import { constants } from 'node:os';

/** The reason of a script's signal: someone asked the process to stop. */
export class Interruption extends Error {
  override readonly name = 'Interruption';
  readonly signalName: NodeJS.Signals;

  constructor(signalName: NodeJS.Signals) {
    super(`Stopped by ${signalName}.`);
    this.signalName = signalName;
  }

  /** As a shell reports it: 128 plus the signal's number. */
  get exitCode(): number {
    return 128 + constants.signals[this.signalName];
  }
}
