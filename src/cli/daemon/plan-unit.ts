import { join } from 'node:path';
import { dataFolderOf } from '../../api/data-folder.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import type { Config } from '../../suite/config-file.ts';
import { systemdUnit } from './systemd-unit.ts';
import { mark, type ServiceSpec, type ServiceUnit } from './unit-file.ts';

/** What a process knows of its machine and user. */
export interface ServiceHost {
  platform: NodeJS.Platform;
  env: NodeJS.ProcessEnv;
  home: string;
  uid: number;
  /** The program that runs this command line, and the script that it runs. */
  program: readonly string[];
}

export interface PlanOptions {
  scope: ServiceSpec['scope'];
  config: Config;
  dataFolder: string | undefined;
  runAs: string | undefined;
}

/**
 * The service unit for this machine's service manager, and the spec it is made from. Throws
 * `SERVICE_MANAGER_UNKNOWN` if we do not know the manager.
 */
export function planUnit(options: PlanOptions, host: ServiceHost): { unit: ServiceUnit; spec: ServiceSpec } {
  const spec = specOf(options, host);
  const isSystem = spec.scope === 'system';
  const configHome = host.env.XDG_CONFIG_HOME || join(host.home, '.config');
  if (host.platform === 'darwin') {
    const folder = isSystem ? '/Library/LaunchDaemons' : join(host.home, 'Library', 'LaunchAgents');
    return { spec, unit: launchdAgent(spec, folder, host.uid) };
  }
  if (host.platform === 'linux') {
    const folder = isSystem ? '/etc/systemd/system' : join(configHome, 'systemd', 'user');
    return { spec, unit: systemdUnit(spec, folder) };
  }
  throw new OffsiteError(`Offsite knows no service manager for ${host.platform}`, {
    code: 'SERVICE_MANAGER_UNKNOWN',
    kind: 'input',
    hint: 'Start `offsite daemon` by other means, or run it in a container: see compose.yaml.',
  });
}

/** A system service keeps its results in /var/lib/offsite, unless a data folder is named. */
function specOf({ scope, config, dataFolder, runAs }: PlanOptions, host: ServiceHost): ServiceSpec {
  const isNamed = dataFolder ?? host.env.OFFSITE_HOME ?? config.dataFolder;
  const usual = scope === 'system' && !isNamed ? '/var/lib/offsite' : undefined;
  const folder = usual ?? dataFolderOf(dataFolder, config, { ...host.env, HOME: host.home });
  const configHome = host.env.XDG_CONFIG_HOME || join(host.home, '.config');
  return {
    scope,
    command: [
      ...host.program,
      'daemon',
      '--data-folder',
      folder,
      // The service starts in another folder and would find another configuration if none were named.
      ...(config.file === undefined ? [] : ['--config', config.file]),
    ],
    dataFolder: folder,
    environmentFile:
      scope === 'system' ? '/etc/offsite/daemon.env' : join(configHome, 'offsite', 'daemon.env'),
    runAs,
  };
}

const label = 'local.offsite.daemon';

/**
 * The daemon's launchd file. launchd cannot read a file of variables, so a shell reads it and then becomes
 * the daemon (exec).
 *
 * @param folder where launchd looks for agents or daemons
 * @param uid the user in whose session an agent runs
 */
function launchdAgent(spec: ServiceSpec, folder: string, uid: number): ServiceUnit {
  const isSystem = spec.scope === 'system';
  const domain = isSystem ? 'system' : `gui/${uid}`;
  const file = join(folder, `${label}.plist`);
  const log = join(spec.dataFolder, 'daemon.log');
  const script = 'f=$1; shift; if [ -r "$f" ]; then set -a; . "$f"; set +a; fi; exec "$@"';
  const words = ['/bin/sh', '-c', script, 'sh', spec.environmentFile, ...spec.command];
  const runAs = isSystem ? spec.runAs : undefined;
  const userName = runAs === undefined ? '' : `  <key>UserName</key>\n  <string>${escaped(runAs)}</string>\n`;
  const text = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- ${mark} It does not touch a file without this line. -->
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${label}</string>
  <key>ProgramArguments</key>
  <array>
${words.map((word) => `    <string>${escaped(word)}</string>`).join('\n')}
  </array>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ThrottleInterval</key>
  <integer>10</integer>
  <key>ExitTimeOut</key>
  <integer>900</integer>
  <key>ProcessType</key>
  <string>Standard</string>
  <key>Umask</key>
  <integer>63</integer>
${userName}  <key>StandardOutPath</key>
  <string>${escaped(log)}</string>
  <key>StandardErrorPath</key>
  <string>${escaped(log)}</string>
</dict>
</plist>
`;
  return {
    name: label,
    file,
    text,
    enabledBy: undefined,
    start: [`launchctl bootstrap ${domain} '${file}'`, `launchctl print ${domain}/${label}`],
    stop: [`launchctl bootout ${domain}/${label}`],
    forget: [],
  };
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
