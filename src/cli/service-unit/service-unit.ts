/** What a service manager is to start, and for whom. All paths are absolute. */
export interface ServiceSpec {
  /** For the whole machine, or for one user as long as that user is there. */
  scope: 'system' | 'user';
  /** The program and the arguments that run the daemon. */
  command: readonly string[];
  dataFolder: string;
  /** Holds what must not be on a command line, such as keys: a line `NAME=value` each. Need not exist. */
  environmentFile: string;
  /** The user that a system service runs as; undefined is root. */
  runAs: string | undefined;
}

/** A service as its manager wants it written down. */
export interface ServiceUnit {
  /** What its manager calls it. */
  name: string;
  file: string;
  text: string;
  /**
   * A link that is there while the manager starts the service by itself; undefined where its manager makes
   * none.
   */
  enabledBy: string | undefined;
  /** Commands that make the manager start it, and show how it is. */
  start: readonly string[];
  /** Commands that end it for good, before its file goes. */
  stop: readonly string[];
  /** Commands that make the manager forget it, once its file has gone. */
  forget: readonly string[];
}

/** By this a file is known as one that we may replace or remove. */
export const mark = 'Written by `offsite daemon install`.';
