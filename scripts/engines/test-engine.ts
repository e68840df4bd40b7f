import type { During } from '../../src/base/progress.ts';

/** An engine that runs for tests, in a folder of its own. Its disposal ends it and removes all it made. */
export interface TestEngine extends AsyncDisposable {
  /** As DOCKER_HOST takes it: `unix:///var/tmp/offsite-engine-x/docker.sock`, `ssh://...`. */
  host: string;
  /** Its socket on this machine, for what a test looks at by itself. */
  socketPath: string;
  /** Further variables that a client needs, such as DOCKER_CERT_PATH. */
  env?: NodeJS.ProcessEnv;
  /** Starts it if it does not run, and resolves when it answers. */
  start(): Promise<void>;
  /**
   * Ends it with SIGKILL and resolves when it is gone. What its containers run may survive, as after a crash.
   */
  kill(): Promise<void>;
}

/** What an engine may need while it is set up. */
export interface EngineGround {
  log: (line: string) => void;
  /** Shows a long step. */
  during: During;
  env: NodeJS.ProcessEnv;
  signal?: AbortSignal | undefined;
}

/** An engine that tests can be run against: `npm test -- --engine NAME`. */
export interface EngineEntry {
  name: string;
  /** For the table of docs/engines.md, without a version: it comes from the engine. */
  title: string;
  /** Makes it ready and starts it. */
  open(ground: EngineGround): Promise<TestEngine>;
}
