/** What a service manager must start, and for whom. All paths are absolute. */
export interface ServiceSpec {
  /** For the whole machine, or for one user while that user is logged in. */
  scope: 'system' | 'user';
  /** The program and the arguments that run the daemon. */
  command: readonly string[];
  dataFolder: string;
  /** Holds what must not be on a command line, such as keys: lines of `NAME=value`. It need not exist. */
  environmentFile: string;
  /** The user that a system service runs as; undefined is root. */
  runAs: string | undefined;
}

/** A service in the form that its manager reads. */
export interface ServiceUnit {
  /** The manager's name for the service. */
  name: string;
  file: string;
  text: string;
  /**
   * A link that exists while the manager starts the service automatically; undefined if the manager makes
   * none.
   */
  enabledBy: string | undefined;
  /** Commands that make the manager start the service, and show its state. */
  start: readonly string[];
  /** Commands that stop the service for good, before its file is removed. */
  stop: readonly string[];
  /** Commands that make the manager forget the service, after its file is removed. */
  forget: readonly string[];
}

/** Marks a file that we may replace or remove. */
export const mark = 'Written by `offsite daemon install`.';
