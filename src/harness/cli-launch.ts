import { type McpServer, transportOf } from '../suite/mcp-server.ts';
import { versionLine } from './cli-stream.ts';
import type { HarnessContext } from './runner.ts';

/** A file that a CLI needs. It is created with mode 600. */
export interface LaunchFile {
  /** An absolute path, or a path below the home folder of the sandbox's user: `~/…`. */
  path: string;
  content: string;
  /**
   * What happens to a file that the profile already put there. Default: it is replaced. A file that has the
   * content already, from an earlier session, is not appended to again.
   */
  existing?: 'kept' | 'appended-to';
}

export interface Launch {
  /** The command line. It starts with an absolute path. */
  argv: readonly string[];
  env: Record<string, string>;
  files: readonly LaunchFile[];
  /** The path of a file that contains the CLI's version. */
  versionFile: string;
}

/**
 * The command that writes the files, prints the version and then becomes the CLI, in one round trip for all
 * of it. The files' contents are passed in environment variables, which the CLI does not inherit.
 */
export function launchCommand({ argv, env, files, versionFile }: Launch): {
  argv: string[];
  env: Record<string, string>;
} {
  const contents = Object.fromEntries(files.map(({ content }, index) => [variable(index), content]));
  const script = [
    'set -e',
    '(',
    'umask 077',
    ...files.map((file, index) => writing(file, variable(index))),
    ')',
    ...files.map((_, index) => `unset ${variable(index)}`),
    `printf '{"type":"${versionLine}","version":"%s"}\\n' "$(cat ${quoted(versionFile)} 2> /dev/null)"`,
    'exec "$@"',
  ].join('\n');
  return { argv: ['sh', '-c', script, 'offsite', ...argv], env: { ...env, ...contents } };
}

function writing({ path, existing }: LaunchFile, content: string): string {
  const target = path.startsWith('~/') ? `"$HOME"/${quoted(path.slice(2))}` : quoted(path);
  const folder = `mkdir -p "$(dirname ${target})"`;
  switch (existing) {
    case 'kept':
      return `${folder}\n[ -e ${target} ] || printf %s "$${content}" > ${target}`;
    case 'appended-to':
      return [
        folder,
        // The shell drops line feeds at the end of what a command prints.
        `case "$(cat ${target} 2> /dev/null; echo .)" in`,
        `  *"$${content}"*) ;;`,
        `  *) printf '\\n%s' "$${content}" >> ${target} ;;`,
        'esac',
      ].join('\n');
    case undefined:
      return `${folder}\nprintf %s "$${content}" > ${target}`;
  }
}

function variable(index: number): string {
  return `OFFSITE_FILE_${index}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The environment of a profile's `run` script: the model's, the tool servers', and the trial's own. */
export function programEnvironment({ model, profile, env }: HarnessContext): Record<string, string> {
  const ofModel = model && { OFFSITE_MODEL: model.name, ...model.variables };
  return { ...ofModel, ...serverEnvironment(profile), ...env };
}

/**
 * The tool servers as most clients have them in a file:
 * `{"mcpServers": {NAME: {command, args, env} | {type, url}}}`.
 */
function serverEnvironment({ mcpServers }: HarnessContext['profile']): Record<string, string> {
  const servers = Object.entries(mcpServers).map(([name, server]) => [name, mcpEntry(server)]);
  if (servers.length === 0) return {};
  return { OFFSITE_MCP_SERVERS: JSON.stringify({ mcpServers: Object.fromEntries(servers) }) };
}

/** A tool server as most clients have it: `{command, args, env}` or `{type, url, headers}`. */
export function mcpEntry(server: McpServer): unknown {
  if (!('url' in server)) return server;
  const { url, headers } = server;
  return { type: transportOf(server), url, ...(headers && { headers }) };
}
