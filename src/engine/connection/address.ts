/** Certificates for an engine behind TLS, in PEM. */
export interface TlsMaterial {
  ca?: string;
  cert?: string;
  key?: string;
  /** False only if a context says so (`skip-tls-verify`). */
  rejectUnauthorized?: boolean;
}

/** Where an engine listens, as the client needs it. */
export type EngineAddress =
  | { kind: 'socket'; path: string }
  | { kind: 'http'; host: string; port: number }
  | { kind: 'https'; host: string; port: number; tls: TlsMaterial };

/** An address where an engine may listen, and where that address comes from. */
export interface EngineCandidate {
  /** As the user would write it: `unix:///var/run/docker.sock`. */
  host: string;
  /** What named it, for messages: `DOCKER_HOST`, `the Docker context "desktop"`. */
  source: string;
  /** The user chose it, so no other engine may be used. */
  isNamed: boolean;
  /** Set if the connection to the engine uses TLS. */
  tls?: TlsMaterial | undefined;
}
