import { join } from 'node:path';
import { mark, type ServiceSpec, type ServiceUnit } from './service-unit.ts';

const label = 'local.offsite.daemon';

/**
 * The daemon's launchd file. launchd cannot read a file of variables, so a shell reads it and then becomes
 * the daemon (exec).
 *
 * @param folder where launchd looks for agents or daemons
 * @param uid the user in whose session an agent runs
 */
export function launchdAgent(spec: ServiceSpec, folder: string, uid: number): ServiceUnit {
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
