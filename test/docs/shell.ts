import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';

/** Records each command that is no builtin, and prints nothing. */
const recorder = `
command_not_found_handle() { printf '%s\\0' "$#" "$@" >> "$RECORDED"; }
cd() { :; }
source() { :; }
exec() { "$@"; }
trap 'echo "line $LINENO: exited with $?" >&2' ERR
shopt -s expand_aliases
PATH=/nowhere
`;

/**
 * The commands of a script as bash reads them: their words, after quotes, variables and substitutions.
 * None of them runs: bash finds no program.
 *
 * @param script without programs named by their paths
 */
export async function commandsOf(script: string): Promise<{ commands: string[][]; problems: string }> {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'offsite-shell-'));
  const recorded = join(folder.path, 'recorded');
  writeFileSync(recorded, '');
  const { stderr } = await execa('/bin/bash', ['--noprofile', '--norc', '-c', `${recorder}\n${script}`], {
    cwd: folder.path,
    extendEnv: false,
    env: { RECORDED: recorded, HOME: folder.path, OFFSITE_HOME: folder.path, GITHUB_PATH: '/dev/null' },
    reject: false,
    stdin: 'ignore',
    timeout: 30_000,
  });
  const words = readFileSync(recorded, 'utf8').split('\0').slice(0, -1);
  const commands: string[][] = [];
  while (words.length > 0) commands.push(words.splice(0, Number(words.shift())));
  return { commands, problems: stderr };
}

/**
 * What a command gives to `offsite`, through npx, sudo, npm or a container; undefined if it does not start
 * it.
 */
export function offsiteArgs(command: readonly string[]): string[] | undefined {
  const [program = '', ...args] = command;
  if (program === 'offsite') return args;
  const [before, after] = {
    npx: ['offsite'],
    sudo: ['offsite'],
    docker: ['offsite'],
    npm: ['offsite', '--'],
  }[program] ?? [undefined];
  const start = before === undefined ? -1 : command.indexOf(before);
  if (start === -1 || command[1] === 'build' || command[1] === 'install') return undefined;
  return command.slice(start + (command[start + 1] === after ? 2 : 1));
}
