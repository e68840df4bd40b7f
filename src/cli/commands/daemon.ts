import { spawnSync } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { Command, Option } from '@commander-js/extra-typings';
import { inputError } from '../../base/offsite-error.ts';
import { type Config, ConfigFile } from '../../suite/config-file.ts';
import { loadConfig } from '../../suite/load-config.ts';
import { ours, text } from '../../text/printable.ts';
import { planUnit, type ServiceHost } from '../daemon/plan-unit.ts';
import { removeUnit, writeUnit } from '../daemon/unit-file.ts';
import { address, insecureHttp, wholeNumber, withConfigAndData } from '../options.ts';
import { openTerminal } from '../terminal.ts';

export function daemonCommand() {
  return withConfigAndData(new Command('daemon'))
    .description(
      'find runs that others have queued, run their trials and report them, until stopped: SIGTERM drains, ' +
        'a second SIGTERM queues running trials again and ends, a third ends at once; ' +
        'SIGHUP reads the configuration again',
    )
    .option('-c, --concurrency <n>', 'trials at a time (default: from cores and memory)', wholeNumber)
    .option('--once', 'end when everything queued has run and is reported; failed trials change no exit code')
    .option(
      '--listen <address>',
      'serve /healthz, /readyz, /metrics and /status there, such as 127.0.0.1:9320 (default: nowhere)',
      address,
    )
    .addOption(insecureHttp())
    .action(async (options) => {
      // The module loads libraries that would add 50 ms to the start of every other command.
      const { runDaemon } = await import('../daemon/run-daemon.ts');
      process.exitCode = await runDaemon(options);
    });
}

export function installCommand() {
  return withConfigAndData(new Command('install'))
    .description(
      'write a systemd unit or a launchd plist that keeps the daemon running; starts nothing itself',
    )
    .option('--user', 'a service of your user, not of the whole machine')
    .addOption(
      new Option(
        '--run-as <user>',
        'the user of a system service (default: who called sudo, else root)',
      ).conflicts('user'),
    )
    .option('--print', 'only print the file')
    .option('--force', 'replace a file that Offsite did not write')
    .action((options) => {
      const { out, err } = openTerminal();
      if (options.runAs !== undefined) requireUser(options.runAs);
      const config = loadConfig({ named: options.config, env: process.env });
      if (config.file === undefined)
        err.print('no offsite.yaml was found, so this daemon has no models or profiles: --config names one');
      const { unit, spec } = planned(options, config);
      if (options.print) {
        out.print(ours(unit.text.replace(/\n$/, '')));
        return;
      }
      const fate = writeUnit(unit, { force: options.force === true });
      out.print(fate === 'unchanged' ? `${unit.file} is up to date` : `${fate} ${unit.file}`);
      out.print(
        text`\nIts variables, such as OFFSITE_URL, OFFSITE_API_KEY and the models' keys, go into a file`,
      );
      out.print(text`that only its user can read:\n\n  ${spec.environmentFile}\n\nThen:\n`);
      const status = `offsite daemon status --data-folder ${spec.dataFolder}`;
      for (const command of [...unit.start, status]) out.print(`  ${command}`);
    });
}

export function uninstallCommand() {
  return withConfigAndData(new Command('uninstall'))
    .description('remove the file that `offsite daemon install` wrote; results and settings stay')
    .option('--user', 'the service of your user, not of the whole machine')
    .option('--print', "only print the file's path")
    .option('--force', 'remove the file even if Offsite did not write it, or while the service is enabled')
    .action((options) => {
      const { out } = openTerminal();
      // The file's path does not depend on the configuration, which may be broken or missing by now.
      const { unit } = planned(options, { ...ConfigFile.parse({}), file: undefined });
      if (options.print) {
        out.print(unit.file);
        return;
      }
      const fate = removeUnit(unit, { force: options.force === true });
      if (fate === 'absent') {
        out.print(`there is no ${unit.file}`);
        return;
      }
      out.print(`removed ${unit.file}`);
      if (unit.forget.length > 0) out.print(text`\nThen:\n`);
      for (const command of unit.forget) out.print(`  ${command}`);
    });
}

/** Throws if this machine has no such user: the service manager would say so only when it starts. */
function requireUser(name: string): void {
  const { status } = spawnSync('id', ['-u', '--', name], { stdio: 'ignore' });
  if (status === 0 || status === null) return;
  throw inputError('USER_UNKNOWN', `this machine has no user ${name}`, {
    hint: 'Name another with --run-as, or make it first.',
  });
}

interface UnitOptions {
  user?: true | undefined;
  runAs?: string | undefined;
  dataFolder?: string | undefined;
}

function planned({ user, runAs, dataFolder }: UnitOptions, config: Config) {
  const { env } = process;
  const sudoUser = env.SUDO_USER === 'root' ? undefined : env.SUDO_USER;
  return planUnit(
    {
      scope: user ? 'user' : 'system',
      config: { ...config, file: absolute(config.file) },
      dataFolder: absolute(dataFolder),
      runAs: runAs ?? sudoUser,
    },
    thisHost(env),
  );
}

/** Makes paths absolute, because a service starts in another folder. */
function absolute(path: string | undefined): string | undefined {
  return path === undefined ? undefined : resolve(path);
}

function thisHost(env: NodeJS.ProcessEnv): ServiceHost {
  const [node = process.execPath, script] = process.argv;
  return {
    platform: process.platform,
    env,
    home: homedir(),
    uid: process.getuid?.() ?? 0,
    // A link in a folder of the PATH may not exist after the next boot.
    program: script === undefined ? [node] : [node, realpathSync(script)],
  };
}
