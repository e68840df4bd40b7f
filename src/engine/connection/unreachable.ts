import { OffsiteError } from '../../base/offsite-error.ts';

/** An address that was tried, and why no engine could be used there. */
export interface TriedEngine {
  /** `unix:///var/run/docker.sock`. */
  host: string;
  /** What named it: `DOCKER_HOST`, `the default socket`. */
  source: string;
  failure: string;
}

/** No engine answered at any address that was tried. */
export class EngineUnreachable extends OffsiteError {
  readonly tried: readonly TriedEngine[];
  /** The user chose the engine, so no other may be used. */
  readonly isNamed: boolean;
  /** There is a socket that this user may not open. */
  readonly isForbidden: boolean;

  constructor(
    tried: readonly TriedEngine[],
    { isNamed, hint, cause }: { isNamed: boolean; hint?: string | undefined; cause: unknown },
  ) {
    const forbidden = tried.filter(({ failure }) => failure.includes('EACCES'));
    const isForbidden = forbidden.length > 0;
    const sockets = forbidden.map(({ host }) => host.replace('unix://', '')).join(', ');
    const why = isForbidden ? `: your user may not open ${sockets}` : '';
    const lines = tried.map(({ host, source, failure }) => `  ${host} (${source}): ${failure}`);
    super(`No engine answers${why}. Tried:\n${lines.join('\n')}`, {
      code: 'ENGINE_UNREACHABLE',
      kind: 'infrastructure',
      hint: hint ?? (isForbidden ? forbiddenHint(sockets) : startHint(isNamed ? tried[0] : undefined)),
      cause,
    });
    this.tried = tried;
    this.isNamed = isNamed;
    this.isForbidden = isForbidden;
  }
}

function forbiddenHint(sockets: string): string {
  return sockets.includes('podman')
    ? 'Run `systemctl --user enable --now podman.socket` for a Podman of your own.'
    : 'Add your user to the group docker and log in again, or use a rootless engine.';
}

/** @param named the engine that the user chose */
function startHint(named: TriedEngine | undefined): string {
  const podman = 'Podman with `systemctl --user enable --now podman.socket`';
  if (named === undefined) return `Start Docker, or ${podman}, or name an engine with DOCKER_HOST.`;
  const who = named.source === 'the configured host' ? 'The configuration' : named.source;
  const start = named.host.includes('podman') ? `start ${podman}` : 'start the engine';
  return `${who} names this engine, so no other is tried: correct that, or ${start}.`;
}
