/** Certificates for an engine behind TLS, in PEM. */
export interface TlsMaterial {
  ca?: string;
  cert?: string;
  key?: string;
  /** False only where a context says so (`skip-tls-verify`). */
  rejectUnauthorized?: boolean;
}

/** Where an engine listens, as the client needs it. */
export type EngineAddress =
  | { kind: 'socket'; path: string }
  | { kind: 'http'; host: string; port: number }
  | { kind: 'https'; host: string; port: number; tls: TlsMaterial };

/** One place where an engine may be, and what made us look there. */
export interface EngineCandidate {
  /** As the user would write it: `unix:///var/run/docker.sock`. */
  host: string;
  /** What named it, for messages: `DOCKER_HOST`, `the Docker context "desktop"`. */
  source: string;
  /** The user named it, so no other will do. */
  isNamed: boolean;
  /** Given where the engine is to be spoken to over TLS. */
  tls?: TlsMaterial | undefined;
}
